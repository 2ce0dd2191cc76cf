package tracker

import (
	"fmt"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// Report is a zone's report on its proxies: how far they have applied what the global sent. It is never stored durably.
type Report struct {
	// Applied is, by type, the global's revision that the zone has.
	Applied map[resources.Type]uint64 `json:"applied"`
	// Own is the zone's own revision that this report covers; zero from a zone that does not send it.
	Own uint64 `json:"own,omitempty"`
	// Behind are the connected proxies that have not acknowledged all that follows from it; More is the number of those
	// that are not named.
	Behind []ProxyBehind `json:"behind"`
	More   int           `json:"more,omitempty"`
	// Streams is how many streams proxies have opened since the zone started: the report does not cover a newer one. A
	// DataplaneInsight counts them in its generation.
	Streams uint32 `json:"streams,omitempty"`
	// Held counts the deletions that the zone holds, by type; NewStore is set while the global's store is not the known
	// one.
	Held     map[resources.Type]int `json:"held,omitempty"`
	NewStore *NewStore              `json:"newStore,omitempty"`
	// Replaced counts what another store of the global replaced in the zone, without names.
	Replaced *Replaced `json:"replaced,omitempty"`
	// Received is the time when the global received it.
	Received time.Time `json:"-"`
}

// Conditions returns a `status.conditions` entry of a Zone for what it holds; nil if it holds nothing.
func (r *Report) Conditions() []resources.Condition {
	held := 0
	for _, n := range r.Held {
		held += n
	}
	if held == 0 && r.NewStore == nil {
		return nil
	}
	c := resources.Condition{
		Type: resources.ConditionDeletionsHeld, Status: resources.ConditionTrue, Reason: "MassDeletion",
		Message: fmt.Sprintf("the zone holds removals (%d) until an operator accepts them, asked of the zone: causewayctl zone accept-deletes", held),
	}
	if r.NewStore != nil {
		c.Reason = "NewStore"
		c.Message = fmt.Sprintf("this global's store is not the one that the zone knew: it holds removals (%d) until the store has again what is missing, or an operator accepts them, asked of the zone: causewayctl zone accept-deletes", held)
	}
	return []resources.Condition{c}
}

// ProxyBehind is a proxy, by the name of its Dataplane in its zone.
type ProxyBehind struct {
	Mesh      string `json:"mesh"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Zone is the proxy's zone in another server's answer; empty in a report.
	Zone string `json:"zone,omitempty"`
	// Reason is empty for a proxy that has not answered yet.
	Reason string `json:"reason,omitempty"`
}

// WaitsFor reports whether proxies of the resource's mesh have yet to acknowledge it, as far as the zone has reported.
func (r *Report) WaitsFor(of *resources.Resource) bool {
	if r.Applied[of.Type] < of.Revision || r.More > 0 {
		return true
	}
	for _, p := range r.Behind {
		if p.Mesh == of.Mesh {
			return true
		}
	}
	return false
}
