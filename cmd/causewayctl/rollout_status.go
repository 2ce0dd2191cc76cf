package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/resources"
)

// rolloutStatus is the rollout of a resource, as the server reports it.
type rolloutStatus struct {
	tracker.Rollout
	// whole is the answer as received.
	whole json.RawMessage
}

// behindText names a proxy that has not acknowledged everything, with its own reason, if it gave one.
func behindText(p tracker.ProxyBehind) string {
	at := proxyPlace(p.Mesh, p.Namespace, p.Name, p.Zone)
	if p.Reason != "" {
		at += " (" + p.Reason + ")"
	}
	return at
}

// unknownText names a proxy whose enforced configuration is unknown, and why.
func unknownText(p tracker.ProxyUnknown) string {
	reason := p.Reason
	if !p.Since.IsZero() {
		reason += " since " + p.Since.UTC().Format(time.RFC3339)
	}
	return proxyPlace(p.Mesh, p.Namespace, p.Name, p.Zone) + " (" + reason + ")"
}

// proxyPlace names a proxy so that it differs from one with the same name in another zone.
func proxyPlace(mesh, namespace, name, zone string) string {
	at := place(resources.Key{Mesh: mesh, Namespace: namespace, Name: name})
	if zone != "" {
		at += " of " + zone
	}
	return at
}

// complete reports whether the rollout is known to be finished.
func (s *rolloutStatus) complete() bool {
	if !s.Stored || s.Source != nil || s.Zones.Acknowledged < s.Zones.Total || len(s.Zones.Refused) > 0 {
		return false
	}
	return !s.concernsProxies() || !s.selectsNothing() && s.Proxies.Enforced >= s.Proxies.Total && s.Proxies.LeftOut == 0 &&
		len(s.NotEnforced)+len(s.Zones.Away)+len(s.Zones.Disabled) == 0
}

// selectsNothing reports whether it is a policy that selects none of the server's known Dataplanes, so that nobody
// enforces it.
func (s *rolloutStatus) selectsNothing() bool {
	return s.concernsProxies() && s.Type != resources.TypeMesh && s.Proxies.Total+s.Proxies.LeftOut == 0
}

// settled reports whether waiting any longer is pointless.
func (s *rolloutStatus) settled() bool {
	nobody := s.selectsNothing() && s.Stored && s.Source == nil && s.Zones.Acknowledged >= s.Zones.Total
	return nobody || s.complete() || len(s.Zones.Refused) > 0 || len(s.NotEnforced) > 0
}

// concernsProxies reports whether resources of the type change the configuration of proxies.
func (s *rolloutStatus) concernsProxies() bool {
	d, ok := resources.Lookup(s.Type)
	return ok && (d.Policy != nil || d.Type == resources.TypeTrafficTarget || d.Type == resources.TypeMesh ||
		d.Type == resources.TypeMeshGateway)
}

// sentence returns the status as text: the progress, and which zones and proxies are behind and why.
func (s *rolloutStatus) sentence() string {
	parts := []string{"not stored"}
	if s.Stored {
		parts = slices.Concat([]string{"stored"}, s.acknowledgement(), s.enforcement())
	}
	for _, zone := range s.Zones.Offline {
		parts = append(parts, zone.String())
	}
	for _, zone := range s.Zones.Refused {
		parts = append(parts, fmt.Sprintf("%s refused: %s", zone.Zone, zone.Reason))
	}
	for _, zone := range s.Zones.Unknown {
		parts = append(parts, fmt.Sprintf("unknown for %s: %s", zone.Zone, zone.Reason))
	}
	if len(s.Zones.Pending) > 0 {
		parts = append(parts, "waiting for "+firstOf(s.Zones.Pending, 5))
	}
	if behind := textsOf(s.Proxies.Behind, behindText); len(behind) > 0 {
		parts = append(parts, "waiting for proxies "+firstOf(behind, 3))
	}
	return printing.Line(fmt.Sprintf("revision %d: %s", s.Revision, strings.Join(parts, "; ")))
}

// acknowledgement describes which servers have the revision. A zone knows only whether the global does.
func (s *rolloutStatus) acknowledgement() []string {
	switch {
	case s.Zone == "" && s.Source != nil: // a replica of the global
		return []string{fmt.Sprintf("acknowledged by %d of %d zones", s.Zones.Acknowledged, s.Zones.Total),
			"as far as was known at " + s.Source.Since.UTC().Format(time.RFC3339) + ": since then the replica that was asked " +
				"does not know whether there is a newer one, or this one still: " + s.Source.Reason}
	case s.Zone == "":
		return []string{fmt.Sprintf("acknowledged by %d of %d zones", s.Zones.Acknowledged, s.Zones.Total)}
	case s.Source != nil && s.Source.Removed:
		return []string{"the global has it no more, as is known since " + s.Source.Since.UTC().Format(time.RFC3339) +
			": the removal is held until an operator accepts it (causewayctl inspect sync)"}
	case s.Source != nil:
		return []string{s.Source.String() + ": whether it has a newer one is unknown"}
	case s.Zones.Acknowledged > 0:
		return []string{"acknowledged by the global"}
	}
	return nil
}

// enforcement describes what proxies enforce, as far as that is known.
func (s *rolloutStatus) enforcement() []string {
	if !s.concernsProxies() {
		return nil
	}
	var parts []string
	of, in := "", ""
	if s.Zone != "" {
		of, in = " of "+s.Zone, " in "+s.Zone
	}
	switch {
	case s.Proxies.Total+s.Proxies.LeftOut > 0:
		parts = append(parts, fmt.Sprintf("enforced by %d of %d proxies", s.Proxies.Enforced, s.Proxies.Total)+of)
	case s.Type == resources.TypeMesh:
		parts = append(parts, "it has no proxy"+in)
	default:
		parts = append(parts, "it selects no known proxy"+in)
	}
	for _, why := range s.NotEnforced {
		parts = append(parts, "not enforced: "+why)
	}
	if unknown := textsOf(s.Proxies.Unknown, unknownText); len(unknown) > 0 {
		parts = append(parts, fmt.Sprintf("unknown for %d: %s", len(unknown), firstOf(unknown, 3)))
	}
	if n := s.Proxies.LeftOut; n > 0 {
		parts = append(parts, fmt.Sprintf("unknown for %d more, which you may not read", n))
	}
	if disabled := s.Zones.Disabled; len(disabled) > 0 {
		parts = append(parts, "disabled is "+firstOf(disabled, 3)+": what its proxies do now is unknown")
	}
	if away := textsOf(s.Zones.Away, tracker.RolloutOffline.String); len(away) > 0 {
		parts = append(parts, firstOf(away, 3)+": what its proxies do now is unknown")
	}
	return parts
}

func textsOf[T any](list []T, text func(T) string) []string {
	var out []string
	for _, one := range list {
		out = append(out, text(one))
	}
	return out
}

// firstOf joins the names, cut after n.
func firstOf(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
