package accesslog

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
)

// defaultSince is the default period of suggestions and of denials.
const defaultSince = 24 * time.Hour

// Config holds the sources of the routes' answers.
type Config struct {
	Store   store.Reader
	Journal *Journal
	// Collecting means that proxies report here. Otherwise the journal stays empty, and the answers report that.
	Collecting bool
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

func (h *handlers) report(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	q := reportQuery{mesh: query.Get("mesh"), policy: query.Get("policy"), now: h.Now(), reader: h.server.Reader(r)}
	if q.policy != "" {
		if _, err := resources.ParseKRI(q.policy); err != nil {
			return api.BadField("policy", "%v", err)
		}
	}
	snapshot := h.Store.Snapshot()
	out := report(h.Journal, snapshot, q)
	out.Unknown = q.unknown(snapshot)
	if !h.Collecting {
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
	out := denials(h.Journal, q)
	named := reportQuery{mesh: q.mesh}
	out.Unknown = named.unknown(h.Store.Snapshot())
	if !h.Collecting && out.Unknown == "" {
		out.Unknown = notCollecting
	}
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
	out, err := suggest(h.Journal, suggestQuery{dataplane: dp, since: since,
		prefixes: paths == pathsPrefix, reader: h.server.Reader(r)})
	if err != nil {
		return err
	}
	if !h.Collecting {
		out.Unknown = notCollecting
		out.Resources = []json.RawMessage{}
	}
	return api.WriteLongJSON(w, out)
}
