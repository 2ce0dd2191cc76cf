package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
)

// conditionProgrammed is True once all servers and proxies that a resource is for have it. Source: Gateway API.
const conditionProgrammed = "Programmed"

// known is all that conditions follow from.
type known struct {
	// refused is why the object is not in the store as it is written.
	refused error
	// stored is the resource in the store; nil if there is none.
	stored *resources.Resource
	// generation is the object's.
	generation int64
	// others are the conditions that the server shows to the object's author.
	others  []resources.Condition
	rollout *tracker.Rollout
	// author reports what the object's author may read. Nil may read everything.
	author *api.Reader
}

// conditions returns the conditions of a resource in a fixed order.
func (n *known) conditions() []resources.Condition {
	if n.refused != nil || n.stored == nil || n.stored.Object.Generation != n.generation {
		return n.unaccepted()
	}
	out := []resources.Condition{
		n.of(resources.ConditionAccepted, "Accepted", "it is valid, and stored"),
		n.of(resources.ConditionResolvedRefs, "ResolvedRefs", "no reference is known to lead nowhere"),
		programmed(n.rollout, n.author),
	}
	for _, c := range n.others {
		if c.Type != resources.ConditionAccepted && c.Type != resources.ConditionResolvedRefs {
			out = append(out, c)
		}
	}
	return out
}

// unaccepted are the conditions of an object that is not in the store as it is written.
func (n *known) unaccepted() []resources.Condition {
	if n.refused == nil { // nothing is known of this generation
		return []resources.Condition{{Type: resources.ConditionAccepted, Status: resources.ConditionUnknown,
			Reason: "Pending", Message: "the server has not taken it in yet"}}
	}
	reason, message := "Invalid", explained(n.refused)
	if waits(n.refused) {
		reason = "NotAccepted"
	}
	rest := "nothing of it has an effect"
	switch {
	case n.stored == nil:
	case n.stored.Object.Generation == n.generation: // labels are in no generation
		rest = "what it said before its labels changed stays in force"
	default:
		rest = fmt.Sprintf("generation %d of it, the last valid one, stays in force", n.stored.Object.Generation)
	}
	return []resources.Condition{
		{Type: resources.ConditionAccepted, Status: resources.ConditionFalse, Reason: reason, Message: message + "\n" + rest},
		{Type: conditionProgrammed, Status: resources.ConditionFalse, Reason: reason, Message: rest},
	}
}

// waits reports whether the document by itself is valid, and the state of the store does not permit it.
func waits(err error) bool {
	fields := api.Explained(err).InvalidParameters
	return len(fields) > 0 && fields[0].Field == "mesh" && strings.HasPrefix(fields[0].Reason, api.UnknownMesh)
}

// explained is the text of an error for the author of an object: a line for each field.
func explained(err error) string {
	e := api.Explained(err)
	if len(e.InvalidParameters) == 0 {
		return e.Detail
	}
	lines := make([]string, len(e.InvalidParameters))
	for i, p := range e.InvalidParameters {
		lines[i] = p.Field + ": " + p.Reason
	}
	return strings.Join(lines, "\n")
}

// of merges the conditions of a type that the server shows. Without any it is True.
func (n *known) of(name, reason, message string) resources.Condition {
	out := resources.Condition{Type: name, Status: resources.ConditionTrue, Reason: reason, Message: message}
	var texts []string
	for _, c := range n.others {
		if c.Type != name || c.Status == resources.ConditionTrue {
			continue
		}
		out.Status, out.Reason = c.Status, c.Reason
		texts = append(texts, c.Message)
	}
	if len(texts) > 0 {
		out.Message = strings.Join(texts, "\n")
	}
	return out
}

// programmed says how far a resource has come. It counts all proxies, and names those that the author may read.
func programmed(r *tracker.Rollout, author *api.Reader) resources.Condition {
	c := resources.Condition{Type: conditionProgrammed, Status: resources.ConditionTrue, Reason: "Programmed"}
	if r == nil {
		c.Status, c.Reason, c.Message = resources.ConditionUnknown, "Unknown", "the server does not know how far it has come"
		return c
	}
	z, p := &r.Zones, &r.Proxies
	var texts []string
	if z.Total > 0 {
		texts = append(texts, fmt.Sprintf("acknowledged by %d of %d %s", z.Acknowledged, z.Total, peers(r)))
	}
	if p.Total > 0 || z.Total == 0 {
		texts = append(texts, fmt.Sprintf("enforced by %d of %d proxies%s", p.Enforced, p.Total, ofZone(r)))
	}
	say := func(status, reason, text string) {
		if c.Status == resources.ConditionTrue || c.Status == resources.ConditionUnknown && status == resources.ConditionFalse {
			c.Status, c.Reason = status, reason
		}
		texts = append(texts, text)
	}
	for _, one := range first(z.Refused) {
		say(resources.ConditionFalse, "Refused", one.Zone+" refuses it: "+one.Reason)
	}
	if len(r.NotEnforced) > 0 {
		say(resources.ConditionFalse, "NotEnforced", "not enforced: "+author.Text(strings.Join(first(r.NotEnforced), "; ")))
	}
	if n := len(z.Pending); n > 0 {
		say(resources.ConditionFalse, "Pending", "not acknowledged yet by "+strings.Join(first(z.Pending), ", "))
	}
	mine, others := behind(p.Behind, author)
	for _, one := range first(mine) {
		say(resources.ConditionFalse, "Pending", author.Text(strings.TrimSuffix("proxy "+one.Name+" has not acknowledged it: "+one.Reason, ": ")))
	}
	if others > 0 {
		say(resources.ConditionFalse, "Pending", fmt.Sprintf("%d proxies of other namespaces have not acknowledged it", others))
	}
	for _, one := range first(slices.Concat(z.Offline, z.Away)) {
		say(resources.ConditionUnknown, "Offline", one.Zone+" is offline")
	}
	for _, one := range first(z.Unknown) {
		say(resources.ConditionUnknown, "Unknown", one.Zone+": "+one.Reason)
	}
	if n := len(p.Unknown); n > 0 {
		say(resources.ConditionUnknown, "ProxiesUnknown", fmt.Sprintf("unknown of %d proxies", n)+among(p.Unknown, author))
	}
	if r.Source != nil {
		say(resources.ConditionUnknown, "SourceOffline", "whether there is a newer one is unknown: "+r.Source.Zone+" is offline")
	}
	if c.Status == resources.ConditionTrue && p.Total > p.Enforced {
		c.Status, c.Reason = resources.ConditionFalse, "Pending"
	}
	c.Message = strings.Join(texts, "; ")
	return c
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
			return ", " + one.Name + " among them: " + author.Text(one.Reason)
		}
	}
	return " of other namespaces"
}

func peers(r *tracker.Rollout) string {
	if r.Zone != "" {
		return "globals"
	}
	return "zones"
}

func ofZone(r *tracker.Rollout) string {
	if r.Zone != "" {
		return " of zone " + r.Zone
	}
	return ""
}

// maxNamed bounds what a message names of each sort.
const maxNamed = 3

func first[T any](list []T) []T { return list[:min(len(list), maxNamed)] }
