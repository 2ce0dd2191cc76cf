package kds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/genproto/googleapis/rpc/status"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// responseStream is the subscribing end of a stream.
type responseStream interface {
	Send(*discovery.DeltaDiscoveryRequest) error
	Recv() (*discovery.DeltaDiscoveryResponse, error)
}

// receiverConfig configures the receiver of one stream.
type receiverConfig struct {
	arrival exchange.Arrival
	store   store.Store
	mapping *exchange.Mapping
	// validate judges a resource after decoding and mapping.
	validate func(*resources.Resource) error
	refusals *tracker.Refusals
	ledger   *tracker.Ledger
	// status, if not nil, holds live types.
	status   store.Store
	versions *CopyVersions
	// quota limits what the peer may store here, nil for no limit; over records the limits that it met.
	quota *quota
	over  *tracker.Over
	// allowance is what the peer may change, nil for everything.
	allowance *allowance
	// replica is this server's instance name among several; empty for a single server.
	replica string
	// met, if not nil, knows whether the peer's store is one that this side has accepted.
	met *peerStore
	// resume is set if the peer understands initial_resource_versions.
	resume bool
	// node describes this side; later requests carry only its id.
	node *corev3.Node
	// acceptDeletes reports whether an operator lets a mass deletion pass; nil never does.
	acceptDeletes func(zone string, t resources.Type) bool
	sendTimeout   time.Duration
	// tracer is nil if tracing is off.
	tracer  trace.Tracer
	panics  *panics.Guard
	session *session
	log     *slog.Logger
}

// receiver applies the messages of one stream. One goroutine runs it, so no field needs a lock.
type receiver struct {
	receiverConfig
	types map[resources.Type]*reception
	// parts is what the last message took of the allowance.
	parts int
	// send sends an answer to the peer.
	send func(context.Context, *discovery.DeltaDiscoveryRequest) error
}

// reception is the state of one type on one stream.
type reception struct {
	// answered is set once a response of the type was answered on this stream. A plain peer's first one is the complete
	// list.
	answered bool
	// listed are the names in the parts of a complete list so far that have a copy here; nil outside one.
	listed map[string]bool
	// named are the refused names in the parts of a complete list or answer so far. claimed are those that the peer was
	// told are here, although they were refused: it does not name them again.
	named, claimed map[string]bool
	// removed are the copies that the parts of a resumed answer remove so far.
	removed map[string]bool
	// unknown is set once the unknown type was reported.
	unknown bool
}

// maxUnknownTypes bounds the names of unknown types that one stream can make us hold, and its requests for unknown
// types.
const maxUnknownTypes = 1024

// maxConflicts bounds how often a batch is planned again because another writer was first.
const maxConflicts = 8

func newReceiver(c receiverConfig) *receiver {
	if c.ledger == nil {
		c.ledger = tracker.NewLedger(c.session.now)
	}
	return &receiver{receiverConfig: c, types: map[resources.Type]*reception{}}
}

// run subscribes to every type and applies the responses until the stream or ctx ends.
func (v *receiver) run(ctx context.Context, stream responseStream,
	responses <-chan *discovery.DeltaDiscoveryResponse) error {
	v.send = func(ctx context.Context, m *discovery.DeltaDiscoveryRequest) error {
		return sendWithin(ctx, v.sendTimeout, v.session.transport, v.panics, stream.Send, m)
	}
	for _, limit := range []string{tracker.LimitRefusals, tracker.LimitBytes} { // recorded again if they are met again
		v.over.End(limit, "")
	}
	if err := v.ask(ctx); err != nil {
		return err
	}
	if err := v.rest(ctx); err != nil { // its last session may have ended while it waited
		return err
	}
	for {
		select {
		case resp := <-responses:
			answer, err := v.handle(ctx, resp)
			if err != nil {
				return err
			}
			if err := v.send(ctx, answer); err != nil {
				return err
			}
			if err := v.rest(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pruneRefusals drops, once a complete list or answer is here, the refusals of resources that are gone.
func (v *receiver) pruneRefusals(d *resources.Descriptor, state *reception, said progress, p *changeset) {
	if !said.list && !said.resume || v.refusals.None() {
		return
	}
	scope := tracker.Refusal{Direction: v.arrival.Direction, Type: d.Type}
	state.named = with(state.named, v.refusals.Among(scope, p.names))
	if said.more {
		return
	}
	v.refusals.Prune(scope, func(r tracker.Refusal) bool {
		return state.named[r.Name] || said.resume && state.claimed[r.Name]
	})
	state.named = nil
}

// handle applies one response and returns the answer: an ACK once everything is durable, or a NACK that names what was
// refused, once the rest is durable.
func (v *receiver) handle(ctx context.Context,
	resp *discovery.DeltaDiscoveryResponse) (*discovery.DeltaDiscoveryRequest, error) {
	if id := resp.GetControlPlane().GetIdentifier(); v.arrival.Direction == exchange.ZoneToGlobal && id != "" &&
		id != v.arrival.Zone {
		return nil, fmt.Errorf("zone %s: %w: its messages are by %q", v.arrival.Zone, ErrNotAllowed, truncate(id))
	}
	t := resources.Type(resp.GetTypeUrl())
	answer := &discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: v.node.GetId()}, TypeUrl: resp.GetTypeUrl(),
		ResponseNonce: resp.GetNonce()}
	d, ok := resources.LookupStored(t)
	if !ok {
		v.reportUnknown(t)
		return answer, nil
	}
	var refused []tracker.Refusal
	if v.arrival.Direction.Carries(d) {
		var err error
		if refused, err = v.apply(ctx, d, resp); err != nil {
			return nil, fmt.Errorf("%s, nonce %s: %w", t, resp.GetNonce(), err)
		}
	} else {
		refused = v.forbid(t, resp)
	}
	if len(refused) > 0 {
		answer.ErrorDetail = &status.Status{Message: refusalMessage(refused)}
		answer.ResourceNamesSubscribe = []string{"*"}
		v.log.Warn("refused resources of the peer", "type", string(t), "nonce", resp.GetNonce(), "refused",
			len(refused), "first", refused[0].Name, "error", truncate(refused[0].Reason))
	}
	return answer, nil
}

// forbid refuses all resources in a response of a type that does not travel in this direction. It ignores removals:
// nothing of the type came from the peer.
func (v *receiver) forbid(t resources.Type, resp *discovery.DeltaDiscoveryResponse) (refused []tracker.Refusal) {
	var names []string
	for _, item := range resp.GetResources() {
		name := truncate(item.GetName())
		names = append(names, name)
		refused = append(refused, tracker.Refusal{Direction: v.arrival.Direction, Type: t, Name: name,
			Reason: fmt.Sprintf("a %s does not travel %s", t, v.arrival.Direction)})
	}
	v.over.Meet(tracker.LimitRefusals, "", tracker.MaxRefusals,
		v.refusals.Settle(tracker.Refusal{Direction: v.arrival.Direction, Type: t},
			append(names, resp.GetRemovedResources()...), refused))
	if len(refused) > 0 {
		v.session.observe(Event{Kind: Forbidden, Direction: v.arrival.Direction, Type: t, Resources: len(refused),
			Refusals: refused})
	}
	return refused
}

func (v *receiver) reportUnknown(t resources.Type) {
	state := v.types[t]
	if state != nil || len(v.types) >= maxUnknownTypes {
		return
	}
	v.types[t] = &reception{unknown: true}
	v.log.Warn("the peer sends an unknown type", "type", truncate(string(t)))
	v.session.observe(Event{Kind: UnknownType, Direction: v.arrival.Direction, Type: t})
}

// apply makes one response durable, except what it refuses.
func (v *receiver) apply(ctx context.Context, d *resources.Descriptor,
	resp *discovery.DeltaDiscoveryResponse) ([]tracker.Refusal, error) {
	state := v.types[d.Type]
	if state == nil {
		state = &reception{}
		v.types[d.Type] = state
	}
	said, ours := parseProgress(resp.GetSystemVersionInfo())
	if !ours {
		said = progress{list: !state.answered, mute: true}
	}
	cause, steps := v.causeOf(d.Type, &said)
	var away outage
	unstorable := map[resources.Key]error{}
	for conflicts := 0; ; {
		p := v.prepare(d, state, resp, said, unstorable)
		_, err := v.commit(ctx, d.Type, p, said, cause)
		if errors.Is(err, store.ErrConflict) && conflicts < maxConflicts {
			conflicts++
			continue
		}
		var large *store.TooLargeError
		if errors.As(err, &large) && unstorable[large.Key] == nil {
			unstorable[large.Key] = err // refused by name; the others are stored without it
			continue
		}
		if errors.Is(err, store.ErrUnavailable) {
			if err = v.waitOut(ctx, &away, d.Type, said.revision, err); err == nil {
				continue
			}
		}
		if err != nil {
			steps.End(err.Error())
			return nil, err
		}
		steps.End("")
		return p.refused, v.settle(ctx, d, state, resp, said, p)
	}
}

// commit applies the changeset's operations as one durable batch, unless this session was fenced off. The batch also records
// how much was seen of the peer's store.
func (v *receiver) commit(ctx context.Context, t resources.Type, p *changeset, said progress,
	cause store.Cause) (*store.Commit, error) {
	if len(p.ops) == 0 {
		return nil, v.session.fence()
	}
	ops := p.ops
	if !isLive(t) { // their revisions are those of another store
		seen, err := v.met.see(ctx, said)
		if err != nil {
			return nil, err
		}
		ops = append(ops[:len(ops):len(ops)], seen...)
	}
	commit, err := v.storeOf(t).Apply(ctx, store.Batch{Ops: ops, Check: v.checkOf(t), Cause: cause,
		Synced: v.arrival.Direction == exchange.GlobalToZone})
	if err != nil {
		return nil, err
	}
	for i := range p.written {
		p.copies[p.written[i].wire] = copyVersion{version: p.written[i].version, key: p.written[i].key,
			revision: commit.Revision}
	}
	return commit, nil
}

// checkOf returns the check of batches of a type. Zones are in the durable store only.
func (v *receiver) checkOf(t resources.Type) func(store.Snapshot) error {
	if v.storeOf(t) == v.store {
		return v.check
	}
	return func(store.Snapshot) error { return v.check(v.store.Snapshot()) }
}

// storeOf returns the store that holds copies of a type.
func (v *receiver) storeOf(t resources.Type) store.Store {
	if v.status != nil && isLive(t) {
		return v.status
	}
	return v.store
}

// check fails if this session is no longer the zone's, or the zone does not take part. It runs under the store's write
// lock.
func (v *receiver) check(s store.Snapshot) error {
	if err := v.session.fence(); err != nil {
		return err
	}
	if v.arrival.Direction == exchange.GlobalToZone {
		return nil
	}
	if err := lost(s, v.replica, v.arrival.Zone); err != nil {
		return err
	}
	if zone := s.Get(ZoneKey(v.arrival.Zone)); zone == nil || !takesPart(zone) {
		return fmt.Errorf("zone %s: %w", v.arrival.Zone, ErrZoneDisabled)
	}
	return nil
}

// settle records the outcome of one response.
func (v *receiver) settle(ctx context.Context, d *resources.Descriptor, state *reception,
	resp *discovery.DeltaDiscoveryResponse, said progress, p *changeset) error {
	state.answered = true
	v.parts = partsOf(d.Type, resp, len(p.ops))
	state.listed, state.removed = p.listed, p.removed
	line := v.ledger.Line(v.arrival.Direction, d.Type, false)
	line.Applied(said.revision, said.mute)
	held := len(p.held) // read it before the ledger has it and others change it
	v.settleHeld(line, said, p)
	v.spend(d.Type, p)
	v.versions.update(d.Type, p.copies, p.gone)
	if (said.list || said.resume) && !said.more {
		v.versions.compared(d.Type)
	}
	v.over.Meet(tracker.LimitRefusals, "", tracker.MaxRefusals,
		v.refusals.Settle(tracker.Refusal{Direction: v.arrival.Direction, Type: d.Type}, p.names, p.refused))
	v.pruneRefusals(d, state, said, p)
	if held > 0 {
		v.log.Error("a complete list would remove "+p.reason+": nothing is removed until an operator accepts it",
			"type", string(d.Type), "removals", held, "copies", p.total)
		v.session.observe(Event{Kind: Held, Direction: v.arrival.Direction, Type: d.Type, Removed: held})
	}
	v.session.observe(Event{
		Kind: Received, Direction: v.arrival.Direction, Type: d.Type, Resources: len(resp.GetResources()),
		Removed: len(resp.GetRemovedResources()),
		Written: len(p.ops), Revision: said.revision, Refusals: p.refused,
	})
	if v.met == nil {
		return nil
	}
	if !isLive(d.Type) {
		v.met.reached(said)
	}
	if said.list || said.resume { // anything later is a deliberate change
		v.met.replaces(d.Type, p.replaced)
	}
	if (said.list || said.resume) && !said.more {
		v.met.whole(d.Type)
	}
	return v.met.review(ctx)
}

// settleHeld records the deletions that wait for an operator. A new list replaces them; any other message releases what
// it brings back or removes.
func (v *receiver) settleHeld(line *tracker.Line, said progress, p *changeset) {
	if (said.list || said.resume) && !said.more {
		line.Hold(p.held, v.session.now())
		return
	}
	for _, op := range p.ops {
		key := op.Delete
		if op.Put != nil {
			key = op.Put.Key
		}
		line.Release(key)
	}
	for _, c := range p.copies {
		line.Release(c.key)
	}
	for _, key := range p.same {
		line.Release(key)
	}
}
