package kds

import (
	"fmt"
	"maps"
	"slices"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// changeset is the effect of one response on the current store.
type changeset struct {
	ops []store.Op
	// durable is how many of the operations are.
	durable int
	refused []tracker.Refusal
	// names are all names in the response.
	names []string
	// copies are the peer's versions that are already here, or were refused; written those that the batch stores.
	copies  map[string]copyVersion
	written []writtenCopy
	gone    []string
	// same are copies that the message names and that are copied to be unchanged.
	same []resources.Key
	// held are deletions that wait for an operator; reason completes the log message; total is the number of copies of
	// the type that the guard went by. before is how many there were before the list; zero if that does not matter.
	held          map[resources.Key]uint64
	reason        string
	total, before int
	// replaced are the names of copies whose content a strange store of the peer replaces.
	replaced []string
	// here are the names in the message that have a copy here, or will have one.
	here []string
	// listed and removed become the state of the type: at most as many as there are copies, whatever the peer names.
	listed, removed map[string]bool
	change          change

	snapshot store.Snapshot
	// unstorable are resources that the store has refused for good.
	unstorable map[resources.Key]error
	staged     map[resources.Key]*resources.Resource
}

type writtenCopy struct {
	wire, version string
	key           resources.Key
}

// prepare evaluates a response against the store, which has refused the resources in unstorable. It changes nothing, so it
// can be repeated.
func (v *receiver) prepare(d *resources.Descriptor, state *reception, resp *discovery.DeltaDiscoveryResponse,
	said progress, unstorable map[resources.Key]error) *changeset {
	p := &changeset{
		snapshot: v.storeOf(d.Type).Snapshot(), unstorable: unstorable,
		copies: map[string]copyVersion{},
		staged: map[resources.Key]*resources.Resource{},
	}
	present := make(map[string]bool, len(resp.GetResources()))
	for _, wire := range resp.GetResources() {
		if err := checkItem(wire); err != nil {
			p.refuseUnnamed(v, d, wire, err)
			continue
		}
		p.names = append(p.names, wire.GetName())
		present[wire.GetName()] = true
		if err := v.prepareOne(p, d, wire); err != nil {
			p.refuse(v, d, wire, err)
		} else {
			p.here = append(p.here, wire.GetName())
		}
	}
	p.names = append(p.names, resp.GetRemovedResources()...)
	if (said.list || said.resume) && len(p.written) > 0 {
		p.before = v.before(p, d.Type, state)
	}
	switch {
	case said.list:
		p.prepareList(v, d, state, present, said)
	case said.resume:
		p.prepareResume(v, d, state, resp.GetRemovedResources(), present, said)
	default:
		p.remove(v, d, v.named(p, d, resp.GetRemovedResources(), present), nil)
	}
	return p
}

// prepareList adds the deletions of a complete list, once its last part is here: the peer's copies that no part named.
func (p *changeset) prepareList(v *receiver, d *resources.Descriptor, state *reception, present map[string]bool,
	said progress) {
	if said.more {
		p.listed = with(state.listed, p.here)
		return
	}
	var missing []*resources.Resource
	for r := range v.copies(p.snapshot, d.Type) {
		if name := v.wireOf(r); !state.listed[name] && !present[name] {
			missing = append(missing, r)
		}
	}
	p.remove(v, d, missing, state)
}

// prepareResume adds the deletions of a resumed answer, once its last part is here.
func (p *changeset) prepareResume(v *receiver, d *resources.Descriptor, state *reception, removed []string,
	present map[string]bool, said progress) {
	if !said.more {
		all := slices.AppendSeq(slices.Clone(removed), maps.Keys(state.removed))
		slices.Sort(all)
		p.remove(v, d, v.named(p, d, all, present), state)
		return
	}
	var copied []string
	for _, name := range removed {
		if v.copyNamed(p.snapshot, d.Type, name) != nil {
			copied = append(copied, name)
		} else {
			p.gone = append(p.gone, name)
		}
	}
	p.removed = with(state.removed, copied)
}

// with adds names to a set, in place. A changeset that is prepared again adds the same names.
func with(set map[string]bool, names []string) map[string]bool {
	if set == nil {
		set = make(map[string]bool, len(names))
	}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// guardedDeletions is the mass-deletion guard's limit: it holds a list that would delete more than half and more than
// this many copies.
const guardedDeletions = 10

// remove adds deletions; those of a list, which has a state, pass the guard or are held. Source: docs/reliability.md,
// promise 3.
func (p *changeset) remove(v *receiver, d *resources.Descriptor, gone []*resources.Resource, state *reception) {
	if state != nil && p.guard(v, d, len(gone), state) {
		p.held = make(map[resources.Key]uint64, len(gone))
		for _, r := range gone {
			p.held[r.Key] = r.Revision
		}
		return
	}
	for _, r := range gone {
		p.ops = append(p.ops, store.Op{Delete: r.Key, If: store.IfRevision(r.Revision)})
		p.gone = append(p.gone, v.wireOf(r))
		p.change.added--
		p.change.grown -= sizeOf(r)
	}
}

// guard reports whether that many deletions must wait for an operator: those of most of what was here of a type before
// the list, or any at all if the peer's store is a strange one.
func (p *changeset) guard(v *receiver, d *resources.Descriptor, gone int, state *reception) bool {
	strange := v.met.isStrange()
	if gone == 0 || gone <= guardedDeletions && !strange || isLive(d.Type) {
		return false
	}
	p.before = v.before(p, d.Type, state)
	p.total = min(v.count(p, d.Type), p.before)
	if p.reason = "too much"; strange {
		p.reason = "what another store of the " + v.met.peer() + " had"
	} else if gone*2 <= p.total {
		return false
	}
	return v.acceptDeletes == nil || !v.acceptDeletes(v.arrival.Zone, d.Type)
}

// prepareOne adds the effect of one resource, or returns the reason for its refusal.
func (v *receiver) prepareOne(p *changeset, d *resources.Descriptor, wire *discovery.Resource) error {
	if c, ok := v.versions.get(d.Type, wire.GetName()); ok && !c.refused && c.version == wire.GetVersion() &&
		wire.GetVersion() != "" {
		if held := p.snapshot.Get(c.key); held != nil && held.Revision == c.revision && !v.misread(held) {
			p.same = append(p.same, c.key)
			return nil
		}
	}
	if len(wire.GetVersion()) > tracker.MaxVersion {
		return fmt.Errorf("%w: its version has %d bytes, and may have %d", errUndecodable, len(wire.GetVersion()),
			tracker.MaxVersion)
	}
	decoded, err := Decode(d.Type, wire)
	if err != nil {
		return err
	}
	arrival := v.arrival
	arrival.Lookup = func(t resources.Type, mesh, name string) *resources.Resource {
		if found := lookup(p.snapshot, t, mesh, name); found != nil {
			return found
		}
		return p.snapshot.Get(resources.Key{Type: t, Mesh: mesh, Namespace: arrival.OwnNamespace, Name: name})
	}
	r, err := v.mapping.Inbound(decoded, &arrival)
	if err != nil {
		return err
	}
	if err := v.validate(r); err != nil {
		return err
	}
	v.storeUnder(p, r)
	return v.stage(p, wire, r)
}

// stage adds r to the batch, unless the store already has it, or its name belongs to another owner.
func (v *receiver) stage(p *changeset, wire *discovery.Resource, r *resources.Resource) error {
	if other := p.staged[r.Key]; other != nil && ownerOf(other) != ownerOf(r) {
		return fmt.Errorf("its name %s is also that of %s in the same message; this one is %s: give one of them another name", r.Name, ownerOf(other), ownerOf(r))
	}
	if err := p.unstorable[r.Key]; err != nil {
		return err
	}
	if v.arrival.Direction == exchange.GlobalToZone {
		r.Status = nil // a zone owns the status of its copy; the global sends a zero value
	}
	held := p.snapshot.Get(r.Key)
	if held != nil {
		if err := v.mayReplace(held, r); err != nil {
			return err
		}
		r.CreationTime = held.CreationTime
		if v.arrival.Direction == exchange.GlobalToZone {
			r.Status = held.Status
		}
		if held.SameContent(r) {
			p.copies[wire.GetName()] = copyVersion{version: wire.GetVersion(), key: r.Key, revision: held.Revision}
			return nil
		}
	}
	condition := store.IfAbsent()
	if held != nil {
		condition = store.IfRevision(held.Revision)
	}
	if p.staged[r.Key] != nil {
		return fmt.Errorf("it is in the message twice")
	}
	if err := v.checkSize(held, r); err != nil {
		return err
	}
	r.Version = wire.GetVersion() // it counts against the size limits too
	if err := v.admit(p, held, r); err != nil {
		return err
	}
	if held != nil && v.met.isStrange() {
		p.replaced = append(p.replaced, wire.GetName())
	}
	p.staged[r.Key] = r
	p.ops = append(p.ops, store.Op{Put: r, If: condition})
	p.written = append(p.written, writtenCopy{wire: wire.GetName(), version: wire.GetVersion(), key: r.Key})
	return nil
}

// checkSize refuses resources above the size limit. What the global has is accepted as long as the store can hold it:
// the global has judged it, perhaps before the limit existed, and a zone that lacks one of its policies may allow what
// others deny.
func (v *receiver) checkSize(held, r *resources.Resource) error {
	if v.arrival.Direction == exchange.GlobalToZone {
		return nil
	}
	return store.CheckSize(r, held)
}
