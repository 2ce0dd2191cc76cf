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
	// allowance limits the rate of the peer's changes, nil for no limit.
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
	// parts is the cost of the last message, in units of the allowance, until it is spent.
	parts int
	batch batchSize
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
	// before is how many copies were here before the list or answer that is arriving; nil until that matters.
	before *int
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
		c.ledger = tracker.NewLedger(c.session.now, nil)
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
	defer v.spendRest()
	if err := v.restAfterMessage(ctx); err != nil { // its last session may have ended while it waited
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
			if err := v.restAfterMessage(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
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
	var done []store.Op
	for conflicts := 0; ; {
		p := v.prepare(d, state, resp, said, unstorable)
		err := v.commit(ctx, d.Type, p, said, cause)
		done = append(done, p.ops[:p.durable]...)
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
			v.parts = partsOf(d.Type, resp, len(done))
			steps.End(err.Error())
			return nil, err
		}
		steps.End("")
		p.ops = done
		return p.refused, v.settle(ctx, d, state, resp, said, p)
	}
}
