package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// rolloutStatus is the answer to GET /_rollout/{type}/{mesh}/{name}.
type rolloutStatus struct {
	Type     resources.Type `json:"type"`
	Revision uint64         `json:"revision"`
	Stored   bool           `json:"stored"`
	// NotEnforced says which parts of a policy no proxy makes anything of.
	NotEnforced []string `json:"notEnforced"`
	Zones       struct {
		Acknowledged int           `json:"acknowledged"`
		Total        int           `json:"total"`
		Offline      []offlineZone `json:"offline"`
		Refused      []refusedZone `json:"refused"`
		Pending      []string      `json:"pending"`
		// Away are zones that acknowledged it and are not connected now.
		Away []offlineZone `json:"away"`
		// Disabled are zones that it does not go to because they are disabled.
		Disabled []string `json:"disabled"`
	} `json:"zones"`
	Proxies struct {
		Enforced int            `json:"enforced"`
		Total    int            `json:"total"`
		Behind   []behindProxy  `json:"behind"`
		Unknown  []unknownProxy `json:"unknown"`
		LeftOut  int            `json:"leftOut"`
	} `json:"proxies"`
	// whole is the answer as it came.
	whole json.RawMessage
}

type offlineZone struct {
	Zone string `json:"zone"`
	// Since is when it left or, for one that was not seen since then, when the server started.
	Since   time.Time `json:"since,omitzero"`
	NotSeen bool      `json:"notSeen,omitempty"`
}

func (z offlineZone) String() string {
	switch {
	case z.Since.IsZero():
		return z.Zone + " not seen since the server started"
	case z.NotSeen:
		return z.Zone + " not seen since the server started at " + z.Since.UTC().Format(time.RFC3339)
	}
	return z.Zone + " offline since " + z.Since.UTC().Format(time.RFC3339)
}

type refusedZone struct {
	Zone   string `json:"zone"`
	Reason string `json:"reason"`
}

// behindProxy is a proxy that has not acknowledged everything, Reason why where it said so.
type behindProxy struct {
	Mesh      string `json:"mesh"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Zone is empty where the zone itself was asked.
	Zone   string `json:"zone"`
	Reason string `json:"reason"`
}

func (p behindProxy) String() string {
	at := proxyPlace(p.Mesh, p.Namespace, p.Name, p.Zone)
	if p.Reason != "" {
		at += " (" + p.Reason + ")"
	}
	return at
}

// unknownProxy is a proxy of which it is not known what it enforces.
type unknownProxy struct {
	Mesh      string    `json:"mesh"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Zone      string    `json:"zone"`
	Reason    string    `json:"reason"`
	Since     time.Time `json:"since,omitzero"`
}

func (p unknownProxy) String() string {
	reason := p.Reason
	if !p.Since.IsZero() {
		reason += " since " + p.Since.UTC().Format(time.RFC3339)
	}
	return proxyPlace(p.Mesh, p.Namespace, p.Name, p.Zone) + " (" + reason + ")"
}

// proxyPlace names a proxy so that it is not taken for one of the same name in another zone.
func proxyPlace(mesh, namespace, name, zone string) string {
	at := place(resources.Key{Mesh: mesh, Namespace: namespace, Name: name})
	if zone != "" {
		at += " of " + zone
	}
	return at
}

// complete: nothing is left to do, and that is known.
func (s *rolloutStatus) complete() bool {
	if !s.Stored || s.Zones.Acknowledged < s.Zones.Total || len(s.Zones.Refused) > 0 {
		return false
	}
	return !s.concernsProxies() || s.Proxies.Enforced >= s.Proxies.Total && s.Proxies.LeftOut == 0 && len(s.NotEnforced)+len(s.Zones.Away)+len(s.Zones.Disabled) == 0
}

// settled: waiting changes nothing.
func (s *rolloutStatus) settled() bool {
	return s.complete() || len(s.Zones.Refused) > 0 || len(s.NotEnforced) > 0
}

// concernsProxies: proxies take something from a resource of the type.
func (s *rolloutStatus) concernsProxies() bool {
	d, ok := resources.Lookup(s.Type)
	return ok && (d.Policy != nil || d.Type == resources.TypeTrafficTarget || d.Type == resources.TypeMesh)
}

// sentence says it for people: revision, how far, and who is behind and why.
func (s *rolloutStatus) sentence() string {
	parts := []string{"not stored"}
	if s.Stored {
		parts = append([]string{"stored", fmt.Sprintf("acknowledged by %d of %d zones", s.Zones.Acknowledged, s.Zones.Total)}, s.enforcement()...)
	}
	for _, zone := range s.Zones.Offline {
		parts = append(parts, zone.String())
	}
	for _, zone := range s.Zones.Refused {
		parts = append(parts, fmt.Sprintf("%s refused: %s", zone.Zone, zone.Reason))
	}
	if len(s.Zones.Pending) > 0 {
		parts = append(parts, "waiting for "+firstOf(s.Zones.Pending, 5))
	}
	if behind := textsOf(s.Proxies.Behind); len(behind) > 0 {
		parts = append(parts, "waiting for proxies "+firstOf(behind, 3))
	}
	return fmt.Sprintf("revision %d: %s", s.Revision, strings.Join(parts, "; "))
}

// enforcement says what proxies make of it, as far as that is known.
func (s *rolloutStatus) enforcement() []string {
	if !s.concernsProxies() {
		return nil
	}
	var parts []string
	switch {
	case s.Proxies.Total+s.Proxies.LeftOut > 0:
		parts = append(parts, fmt.Sprintf("enforced by %d of %d proxies", s.Proxies.Enforced, s.Proxies.Total))
	case s.Type == resources.TypeMesh:
		parts = append(parts, "there is no proxy in it")
	default:
		parts = append(parts, "it selects no proxy that is known")
	}
	for _, why := range s.NotEnforced {
		parts = append(parts, "not enforced: "+why)
	}
	if unknown := textsOf(s.Proxies.Unknown); len(unknown) > 0 {
		parts = append(parts, fmt.Sprintf("unknown of %d: %s", len(unknown), firstOf(unknown, 3)))
	}
	if n := s.Proxies.LeftOut; n > 0 {
		parts = append(parts, fmt.Sprintf("unknown of %d more, which you may not read", n))
	}
	if disabled := s.Zones.Disabled; len(disabled) > 0 {
		parts = append(parts, "disabled is "+firstOf(disabled, 3)+": what proxies do there now is not known")
	}
	if away := textsOf(s.Zones.Away); len(away) > 0 {
		parts = append(parts, firstOf(away, 3)+": what proxies do there now is not known")
	}
	return parts
}

func textsOf[T fmt.Stringer](list []T) []string {
	var out []string
	for _, one := range list {
		out = append(out, one.String())
	}
	return out
}

// firstOf is a list for people, cut after n.
func firstOf(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
