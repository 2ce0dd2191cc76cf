package accesslog

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// defaultSince is the default period of suggestions and of denials.
const defaultSince = 24 * time.Hour

// Config holds the sources of the routes' answers.
type Config struct {
	Store store.Reader
	// Zone is a zone server's own zone, and Journal what its proxies reported; empty and nil on a global.
	Zone    string
	Journal *Journal
	// Collecting means that proxies report here. Otherwise the journal stays empty, and the answers report that.
	Collecting bool
	// Ask returns, on a global, what a zone answers. It is required there. Errors are those of the API.
	Ask func(ctx context.Context, zone string, of Selection) (*Record, error)
	// Now is the clock; time.Now when nil.
	Now func() time.Time
}

// Forms in which suggestions allow paths.
const (
	pathsExact  = "exact"
	pathsPrefix = "prefix"
)

const notCollecting = "the zone runs without --access-log als"

// Register adds GET /_report/shadow, GET /_report/denied and GET /_suggest/permissions.
func Register(server *api.Server, cfg Config) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	h := &handlers{cfg, server}
	server.Handle(api.RouteShadowReport, h.report)
	server.Handle(api.RouteDenialReport, h.denials)
	server.Handle(api.RouteSuggest, h.suggest)
}

type handlers struct {
	Config
	// server authorizes the caller.
	server *api.Server
}

// observed is what a zone's proxies reported.
type observed struct {
	zone       string
	journal    *Journal
	collecting bool
	// policies are those with shadow denials in the zone.
	policies []shadowPolicy
}

// ask returns what the proxies reported: those of this zone, or on a global those of the named zone.
func (h *handlers) ask(r *http.Request, zone string, of Selection) (*observed, error) {
	if h.Ask == nil {
		if zone != "" && zone != h.Zone {
			return nil, api.BadField("zone", "%q: this server is %s", zone, cmp.Or("zone "+h.Zone, "no zone"))
		}
		out := &observed{zone: h.Zone, journal: h.Journal, collecting: h.Collecting}
		if of.Kind == Shadowed {
			s := h.Journal.read(func(*Entry) bool { return false })
			out.policies = shadowPolicies(h.Store.Snapshot(), of.Mesh, &s)
		}
		return out, nil
	}
	if zone == "" {
		return nil, api.BadField("zone", "each zone keeps what its own proxies report: name the zone")
	}
	if err := h.server.MissingZone(r, h.Store.Snapshot(), zone); err != nil {
		return nil, err
	}
	record, err := h.Ask(r.Context(), zone, of)
	if err != nil {
		return nil, err
	}
	return &observed{zone: zone, journal: record.journal(), collecting: record.Collecting, policies: record.Policies}, nil
}

// asOf gives policies that changed on the global after they did in the zone the time of the global: what the zone has
// seen is of an earlier form of them.
func (o *observed) asOf(snap store.Snapshot) {
	here := map[string]time.Time{}
	for r := range snap.List(store.Query{Type: resources.TypeMeshTrafficPermission}) {
		here[resources.KRIOf(r).String()] = r.ModificationTime
	}
	for i := range o.policies {
		p := &o.policies[i]
		p.Changed = later(p.Changed, here[p.KRI])
	}
}

// notCollecting returns why nothing was reported, or "".
func (o *observed) notCollecting() string {
	if o.collecting {
		return ""
	}
	return notCollecting
}

func (h *handlers) report(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	q := reportQuery{mesh: query.Get("mesh"), policy: query.Get("policy"), now: h.Now(), reader: h.server.Reader(r)}
	if q.policy != "" {
		if _, err := resources.ParseKRI(q.policy); err != nil {
			return api.BadField("policy", "%v", err)
		}
	}
	seen, err := h.ask(r, query.Get("zone"), Selection{Kind: Shadowed, Mesh: q.mesh})
	if err != nil {
		return err
	}
	if h.Ask != nil {
		seen.asOf(h.Store.Snapshot())
	}
	out := report(seen, q)
	out.Unknown = q.unknown(h.Store.Snapshot())
	if !seen.collecting {
		out.Unknown = notCollecting
		for i := range out.Readiness {
			out.Readiness[i] = api.Readiness{Policy: out.Readiness[i].Policy, Text: "unknown: " + notCollecting}
		}
	}
	return api.WriteLongJSON(w, out)
}

func (h *handlers) denials(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	since, err := h.since(query)
	if err != nil {
		return err
	}
	q := denialQuery{mesh: query.Get("mesh"), since: since, size: defaultDenials, reader: h.server.Reader(r)}
	if text := query.Get("size"); text != "" {
		if q.size, err = strconv.Atoi(text); err != nil || q.size < 1 || q.size > maxDenials {
			return api.BadField("size", "%q: want a number from 1 to %d", text, maxDenials)
		}
	}
	seen, err := h.ask(r, query.Get("zone"), Selection{Kind: Denied, Mesh: q.mesh})
	if err != nil {
		return err
	}
	out := denials(seen.journal, q)
	named := reportQuery{mesh: q.mesh}
	out.Unknown = cmp.Or(named.unknown(h.Store.Snapshot()), seen.notCollecting())
	return api.WriteLongJSON(w, out)
}

// since returns the start of the period in a request.
func (h *handlers) since(query url.Values) (time.Time, error) {
	since := defaultSince
	if text := query.Get("since"); text != "" {
		var err error
		if since, err = time.ParseDuration(text); err != nil || since <= 0 {
			return time.Time{}, api.BadField("since", "%q: want a duration, such as 24h", text)
		}
	}
	return h.Now().Add(-since), nil
}

func (h *handlers) suggest(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	since, err := h.since(query)
	if err != nil {
		return err
	}
	paths := query.Get("paths")
	if paths != "" && paths != pathsExact && paths != pathsPrefix {
		return api.BadField("paths", "%q: want %s or %s", paths, pathsExact, pathsPrefix)
	}
	if query.Get("dataplane") == "" {
		return api.BadField("dataplane", "name the Dataplane that the permission is for")
	}
	key := resources.Key{Type: resources.TypeDataplane, Mesh: query.Get("mesh"), Namespace: query.Get("namespace"),
		Name: query.Get("dataplane")}
	if key.Mesh == "" {
		key.Mesh = "default"
	}
	dp, err := h.server.Find(r, h.Store.Snapshot(), resources.VerbRead, key)
	if err != nil {
		return err
	}
	seen, err := h.ask(r, dp.Zone(), Selection{Mesh: key.Mesh, Dataplane: resources.KRIOf(dp)})
	if err != nil {
		return err
	}
	out, err := suggest(seen.journal, suggestQuery{dataplane: dp, since: since, byLabels: h.Ask != nil,
		prefixes: paths == pathsPrefix, reader: h.server.Reader(r)})
	if err != nil {
		return err
	}
	if h.Ask != nil {
		h.warnOfNamesakes(dp, out)
	}
	if !seen.collecting {
		out.Unknown = notCollecting
		out.Resources = []json.RawMessage{}
	}
	return api.WriteLongJSON(w, out)
}

// warnOfNamesakes warns of the Dataplanes of the same zone that permissions by labels also select: a Dataplane without a
// namespace has no label that others lack.
func (h *handlers) warnOfNamesakes(dp *resources.Resource, out *api.Suggestion) {
	n := 0
	for r := range h.Store.Snapshot().List(store.Query{Type: resources.TypeDataplane, Mesh: dp.Mesh, Labels: labelsOf(dp)}) {
		if r.Key != dp.Key {
			n++
		}
	}
	if n > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("the permissions also select %d other Dataplanes of zone %s with this name, "+
			"in namespaces: ask the zone itself", n, dp.Zone()))
	}
}
