package kds

import (
	"context"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

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
		state.before = nil
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
	v.met.received(d.Type)
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
