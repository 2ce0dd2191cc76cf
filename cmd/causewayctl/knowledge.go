package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

// zoneKnowledge says how fresh the global's knowledge about a zone is, or a zone's knowledge from its global. A zone's
// knowledge about itself is always fresh.
type zoneKnowledge struct {
	Zone      string `json:"zone"`
	Connected bool   `json:"connected"`
	// Since is when the zone connected or disconnected. It is zero for a zone not seen since Started, when the global
	// started.
	Since   time.Time `json:"since,omitzero"`
	Started time.Time `json:"started,omitzero"`
	// Reported is when the zone last reported on its proxies.
	Reported time.Time `json:"reported,omitzero"`
	// Behind are the types of which the zone has not acknowledged everything that is shown. Refused are the KRIs, or
	// names, of resources that it was not sent or refused.
	Behind []resources.Type `json:"behind,omitempty"`
	// Held counts the removals that the zone holds, by type: what they would remove is in force there.
	Held map[resources.Type]int `json:"held,omitempty"`
	// Newer are the types of which the zone has sent more than this server has stored.
	Newer   []resources.Type `json:"newer,omitempty"`
	Refused []string         `json:"refused,omitempty"`
	// Global is set if a zone responded, and this is about its global.
	Global bool `json:"global,omitempty"`
	// Unknown is the reason why none of this is known.
	Unknown string `json:"unknown,omitempty"`
	// Outdated is set if the responding global does not know what other replicas wrote.
	Outdated string `json:"outdated,omitempty"`
}

// knowledgeOf asks the global about its connections to zones. A zone's server reports instead that its global is away.
func knowledgeOf(ctx context.Context, client *api.Client, zones ...string) []zoneKnowledge {
	var out []zoneKnowledge
	for _, zone := range slices.Compact(slices.Sorted(slices.Values(zones))) {
		if zone == "" {
			continue
		}
		s, err := fetchSession(ctx, client, zonePath(zone, "_sync"), "")
		var refused *api.Error
		switch {
		case api.IsElsewhere(err):
			return ofItsGlobal(ctx, client)
		case api.IsNotFound(err):
		case errors.As(err, &refused) && refused.Status == http.StatusForbidden:
			out = append(out, zoneKnowledge{Zone: zone, Unknown: "you may not read the zone"})
		case err != nil:
			out = append(out, zoneKnowledge{Zone: zone, Unknown: err.Error()})
		default:
			out = append(out, knowledgeFrom(zone, s))
		}
	}
	return out
}

// ofItsGlobal asks a zone whether it has a session with its global. It returns nothing if the zone has one, or needs
// none.
func ofItsGlobal(ctx context.Context, client *api.Client) []zoneKnowledge {
	s, err := fetchSession(ctx, client, "/_sync", "")
	var refused *api.Error
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusForbidden:
		return []zoneKnowledge{{Global: true, Unknown: "you may not read the zone's sync"}}
	case err == nil && s.Connected:
		return waitingHere(s)
	case api.IsNotFound(err), err == nil && s.Since.IsZero() && s.Started.IsZero(): // it runs alone
		return nil
	case err != nil:
		return []zoneKnowledge{{Global: true, Unknown: err.Error()}}
	}
	return []zoneKnowledge{{Global: true, Since: s.Since, Started: s.Started}}
}

// waitingHere returns what a zone has of its global that waits for its store.
func waitingHere(s *syncSession) []zoneKnowledge {
	k := zoneKnowledge{Global: true, Connected: true, Since: s.Since}
	for i := range s.Types {
		if t := &s.Types[i]; t.Direction == "toZone" && t.LagSeconds > 0 {
			k.Behind = append(k.Behind, t.Type)
		}
	}
	if len(k.Behind) == 0 {
		return nil
	}
	return []zoneKnowledge{k}
}

// knowledgeFrom returns what a session says about a zone.
func knowledgeFrom(zone string, s *syncSession) zoneKnowledge {
	k := zoneKnowledge{Zone: zone, Connected: s.Connected, Since: s.Since, Started: s.Started, Reported: s.Reported,
		Held: s.HeldByZone}
	if s.Unheard {
		k.Unknown = "of it nothing is heard since " + s.Since.UTC().Format(time.RFC3339) +
			": " + s.WhyUnheard
	}
	if !s.OutdatedSince.IsZero() {
		k.Outdated = s.outdatedText()
	}
	for i := range s.Types {
		t := &s.Types[i]
		if t.Direction != "toZone" {
			if t.LagSeconds > 0 {
				k.Newer = append(k.Newer, t.Type)
			}
			continue
		}
		if t.LagSeconds > 0 {
			k.Behind = append(k.Behind, t.Type)
		}
		for _, r := range t.Refused {
			k.Refused = append(k.Refused, cmp.Or(r.KRI, r.Name))
		}
	}
	return k
}

// String returns the knowledge as text.
func (k zoneKnowledge) String() string { return k.presence() + k.lacking() }

// lacking lists what the zone may lack of what is shown.
func (k zoneKnowledge) lacking() string {
	text := ""
	if len(k.Newer) > 0 {
		text = fmt.Sprintf("; its own %s may be newer than what is shown", joinTypes(k.Newer))
	}
	if len(k.Behind) > 0 && !k.Global {
		text += fmt.Sprintf("; its %s may be older than what is shown", joinTypes(k.Behind))
	}
	for _, t := range slices.Sorted(maps.Keys(k.Held)) {
		text += fmt.Sprintf("; it holds the removal of %d %s, which are in force there", k.Held[t], t)
	}
	if k.Outdated != "" {
		text += "; " + k.Outdated
	}
	if len(k.Refused) > 0 {
		text += "; it did not accept " + firstOf(k.Refused, 5)
	}
	return text
}

// joinTypes joins the names of types.
func joinTypes(types []resources.Type) string {
	names := make([]string, 0, len(types))
	for _, t := range types {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

// presence says since when the zone is connected, or away, and how old its report is.
func (k zoneKnowledge) presence() string {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch {
	case k.Global:
		return k.ofGlobal()
	case k.Unknown != "":
		return fmt.Sprintf("%s: whether it is connected is unknown: %s", k.Zone, k.Unknown)
	case !k.Connected && k.Since.IsZero():
		return fmt.Sprintf("%s: not seen since the global started%s: its own resources are those in the store, and whether it has everything else that is shown is unknown", k.Zone, sinceText(k.Started))
	case !k.Connected:
		return fmt.Sprintf("%s: offline since %s: its own resources are as they were then", k.Zone, at(k.Since))
	case k.Reported.Before(k.Since):
		return fmt.Sprintf("%s: online since %s; it has not reported its proxies", k.Zone, at(k.Since))
	}
	return fmt.Sprintf("%s: online since %s; it last reported its proxies at %s", k.Zone, at(k.Since), at(k.Reported))
}

// ofGlobal says that a zone's global is away, or that this is unknown.
func (k zoneKnowledge) ofGlobal() string {
	switch {
	case k.Unknown != "":
		return "whether the zone has all that the global has is unknown: " + k.Unknown
	case k.Connected:
		return "what it sent of " + joinTypes(k.Behind) + " waits for the store here: what is shown may be older"
	case k.Since.IsZero():
		return "not seen since the zone started" + sinceText(k.Started) + ": whether it has newer ones is unknown"
	}
	return "offline since " + k.Since.UTC().Format(time.RFC3339) + ": whether it has newer ones is unknown"
}

// writeKnowledge writes how fresh the answer is, if it is not the server's own knowledge.
func writeKnowledge(w io.Writer, known []zoneKnowledge) {
	title := "zones"
	if len(known) > 0 && known[0].Global {
		title = "the global"
	}
	writeList(w, title, textsOf(known, zoneKnowledge.String))
}

// zonesOfKRIs returns the zones in the KRIs.
func zonesOfKRIs(names ...string) []string {
	var zones []string
	for _, name := range names {
		if kri, err := resources.ParseKRI(name); err == nil && kri.Zone != "" {
			zones = append(zones, kri.Zone)
		}
	}
	return zones
}

// zonesOfProxies returns the zones of the Dataplanes.
func zonesOfProxies(proxies []inspect.Meta) []string {
	var names []string
	for i := range proxies {
		names = append(names, proxies[i].KRI)
	}
	return zonesOfKRIs(names...)
}

// notEnforced returns a note for a heading if this version does not configure proxies by a part of a policy type.
func notEnforced(t resources.Type, takes func(resources.PolicyShape) bool) string {
	d, ok := resources.Lookup(t)
	if !ok || d.Policy == nil || takes(resources.Enforced(t)) {
		return ""
	}
	return "  (not enforced: this version does not configure proxies by it)"
}

func onProxy(s resources.PolicyShape) bool    { return s.Single }
func onOutbound(s resources.PolicyShape) bool { return s.To }
func onInbound(s resources.PolicyShape) bool  { return s.Rules || s.From }
