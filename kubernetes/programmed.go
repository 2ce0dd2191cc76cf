package kubernetes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

// conditionProgrammed is True once all servers and proxies of a resource are known to have it. Source: Gateway API.
const conditionProgrammed = "Programmed"

// maxNamed limits how many of each kind a message names.
const maxNamed = 3

// programming is the condition under construction.
type programming struct {
	// author reports what the object's author may read. Nil may read everything.
	author    *api.Reader
	condition resources.Condition
	texts     []string
}

// programmed reports how far a resource has come. It counts all proxies, and names those that the author may read.
func programmed(r *tracker.Rollout, author *api.Reader) resources.Condition {
	p := &programming{author: author, condition: resources.Condition{Type: conditionProgrammed, Status: resources.ConditionTrue,
		Reason: "Programmed"}}
	if r == nil {
		p.unknown("Unknown", "the server does not know how far it has come")
		return p.finished()
	}
	p.counts(r)
	p.failures(r)
	p.doubts(r)
	if p.condition.Status == resources.ConditionTrue && r.Proxies.Total > r.Proxies.Enforced {
		p.condition.Status, p.condition.Reason = resources.ConditionFalse, "Pending"
	}
	return p.finished()
}

func (p *programming) finished() resources.Condition {
	p.condition.Message = strings.Join(p.texts, "; ")
	return p.condition
}

// counts adds how many servers and proxies have it.
func (p *programming) counts(r *tracker.Rollout) {
	peers, of := "zones", ""
	if r.Zone != "" {
		peers, of = "globals", " of zone "+r.Zone
	}
	if r.Zones.Total > 0 {
		p.texts = append(p.texts, fmt.Sprintf("acknowledged by %d of %d %s", r.Zones.Acknowledged, r.Zones.Total, peers))
	}
	switch d, ok := resources.Lookup(r.Type); {
	case r.Proxies.Total > 0:
		p.texts = append(p.texts, fmt.Sprintf("enforced by %d of %d proxies%s", r.Proxies.Enforced, r.Proxies.Total, of))
	case ok && (d.Policy != nil || d.Type == resources.TypeTrafficTarget || d.Type == resources.TypeMeshGateway):
		p.texts = append(p.texts, "it selects no known proxy"+of)
	case r.Zones.Total == 0:
		p.texts = append(p.texts, "it is for no other server")
	}
}

// failures adds who does not have it.
func (p *programming) failures(r *tracker.Rollout) {
	for _, one := range first(r.Zones.Refused) {
		p.lacks("Refused", one.Zone+" refuses it: "+one.Reason)
	}
	if len(r.NotEnforced) > 0 {
		p.lacks("NotEnforced", "not enforced: "+p.author.Text(strings.Join(first(r.NotEnforced), "; ")))
	}
	if len(r.Zones.Pending) > 0 {
		p.lacks("Pending", "not acknowledged yet by "+strings.Join(first(r.Zones.Pending), ", "))
	}
	mine, others := behind(r.Proxies.Behind, p.author)
	for _, one := range first(mine) {
		p.lacks("Pending", p.author.Text(strings.TrimSuffix("proxy "+one.Name+" has not acknowledged it: "+one.Reason, ": ")))
	}
	if others > 0 {
		p.lacks("Pending", fmt.Sprintf("%d proxies of other namespaces have not acknowledged it", others))
	}
	if r.Source != nil && r.Source.Removed {
		p.lacks("Removed", "the global has it no more, as is known since "+r.Source.Since.UTC().Format(time.RFC3339)+
			": the removal is held until an operator accepts it")
	}
}

// doubts adds for whom it is unknown, since when, and why.
func (p *programming) doubts(r *tracker.Rollout) {
	for _, one := range first(slices.Concat(r.Zones.Offline, r.Zones.Away)) {
		p.unknown("Offline", one.String()+": what its proxies do now is unknown")
	}
	if len(r.Zones.Disabled) > 0 {
		p.unknown("Disabled", "disabled is "+strings.Join(first(r.Zones.Disabled), ", ")+": what its proxies do now is unknown")
	}
	for _, one := range first(r.Zones.Unknown) {
		p.unknown("Unknown", one.Zone+": "+one.Reason)
	}
	if n := len(r.Proxies.Unknown); n > 0 {
		p.unknown("ProxiesUnknown", fmt.Sprintf("unknown for %d proxies", n)+among(r.Proxies.Unknown, p.author))
	}
	switch s := r.Source; {
	case s == nil || s.Removed:
	case r.Zone == "": // a replica of the global
		p.unknown("SourceOffline", "since "+s.Since.UTC().Format(time.RFC3339)+
			" it is unknown whether there is a newer one, or this one still: "+s.Reason)
	default:
		p.unknown("SourceOffline", s.String()+": whether it has a newer one is unknown")
	}
}

// lacks adds that someone does not have it.
func (p *programming) lacks(reason, text string) {
	if p.condition.Status != resources.ConditionFalse {
		p.condition.Status, p.condition.Reason = resources.ConditionFalse, reason
	}
	p.texts = append(p.texts, text)
}

// unknown adds a reason why it is unknown whether all have it.
func (p *programming) unknown(reason, text string) {
	if p.condition.Status == resources.ConditionTrue {
		p.condition.Status, p.condition.Reason = resources.ConditionUnknown, reason
	}
	p.texts = append(p.texts, text)
}

// behind returns the proxies of a list that the author may read, and the number of the others.
func behind(list []tracker.ProxyBehind, author *api.Reader) (mine []tracker.ProxyBehind, others int) {
	for _, one := range list {
		if author.Dataplane(one.Mesh, one.Namespace, one.Name) {
			mine = append(mine, one)
		}
	}
	return mine, len(list) - len(mine)
}

// among names the first proxy of a list that the author may read.
func among(list []tracker.ProxyUnknown, author *api.Reader) string {
	for _, one := range list {
		if author.Dataplane(one.Mesh, one.Namespace, one.Name) {
			since := ""
			if !one.Since.IsZero() {
				since = " since " + one.Since.UTC().Format(time.RFC3339)
			}
			return ", " + one.Name + " among them: " + author.Text(one.Reason) + since
		}
	}
	return " of other namespaces"
}

func first[T any](list []T) []T { return list[:min(len(list), maxNamed)] }
