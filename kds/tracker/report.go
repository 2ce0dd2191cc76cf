package tracker

import (
	"fmt"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// Report is what a zone says of its proxies: how far what the global sent has come. It is never stored durably.
type Report struct {
	// Applied is, by type, the global's revision that the zone has.
	Applied map[resources.Type]uint64 `json:"applied"`
	// Own is the zone's own revision up to which the proxies are told of here; zero from a zone that does not say.
	Own uint64 `json:"own,omitempty"`
	// Behind are the connected proxies that have not acknowledged all that follows from it; More is how many there are beside those
	// that are named.
	Behind []ProxyBehind `json:"behind"`
	More   int           `json:"more,omitempty"`
	// Streams is how many streams proxies have opened since the zone started: of one that is newer nothing is said. A
	// DataplaneInsight counts them in its generation.
	Streams uint32 `json:"streams,omitempty"`
	// Held counts the removals that the zone holds, by type; NewStore is there while the global's store is not the one it knew.
	Held     map[resources.Type]int `json:"held,omitempty"`
	NewStore *NewStore              `json:"newStore,omitempty"`
	// Replaced is what another store of the global replaced in the zone, without names.
	Replaced *Replaced `json:"replaced,omitempty"`
	// Received is when the global got it.
	Received time.Time `json:"-"`
}

// Conditions says in the words of `status.conditions` of a Zone what it holds; nil when it holds nothing.
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
	// Zone is the proxy's, where another server was asked; not in a report.
	Zone string `json:"zone,omitempty"`
	// Reason is empty for one that has not answered yet.
	Reason string `json:"reason,omitempty"`
}

// WaitsFor reports whether proxies of the resource's mesh are still to acknowledge it, as far as the zone has said.
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
