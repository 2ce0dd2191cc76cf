package envoyadmin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// Config configures the routes. All fields are required.
type Config struct {
	Store store.Reader
	Home  resources.Home
	// Assigned returns the identity of a Dataplane of the zone.
	Assigned func(dp *resources.Resource) (identity.Assigned, error)
	// Admin returns where the proxy of a Dataplane shows its admin interface, and how many streams the Dataplane's Envoys
	// have, as xds.Proxies.Admin does.
	Admin func(dp resources.Key) (address string, streams int, err error)
	Key   *Key
}

// Register adds the routes to a zone's API.
func Register(routes *api.Server, c Config) {
	h := &handlers{config: c, routes: routes}
	routes.Handle(api.RouteProxyConfig, func(w http.ResponseWriter, r *http.Request) error {
		return h.serve(w, r, "/config_dump", url.Values{"include_eds": {""}})
	})
	routes.Handle(api.RouteProxyCertificates, func(w http.ResponseWriter, r *http.Request) error {
		return h.serve(w, r, "/certs", nil)
	})
	routes.Handle(api.RouteProxyClusters, h.clusters)
	routes.Handle(api.RouteProxyStats, h.stats)
}

type handlers struct {
	config Config
	routes *api.Server
}

func (h *handlers) clusters(w http.ResponseWriter, r *http.Request) error {
	query, err := formatOf(r)
	if err != nil {
		return err
	}
	return h.serve(w, r, "/clusters", query)
}

// maxMatch bounds the expression that names match, in bytes.
const maxMatch = 256

// stats leaves out what Envoy has never counted, unless the request asks for all.
func (h *handlers) stats(w http.ResponseWriter, r *http.Request) error {
	query, err := formatOf(r)
	if err != nil {
		return err
	}
	switch unused := r.URL.Query().Get("unused"); unused {
	case "", "false":
		query.Set("usedonly", "")
	case "true":
	default:
		return api.BadField("unused", "want true or false, got %q", unused)
	}
	if match := r.URL.Query().Get("match"); len(match) > maxMatch {
		return api.BadField("match", "want at most %d bytes, got %d", maxMatch, len(match))
	} else if _, err := regexp.Compile(match); err != nil {
		return api.BadField("match", "want a regular expression of RE2: %v", err)
	} else if match != "" {
		query.Set("filter", match)
	}
	return h.serve(w, r, "/stats", query)
}

// formatOf reads the parameter format: text, the default, or json.
func formatOf(r *http.Request) (url.Values, error) {
	switch format := r.URL.Query().Get("format"); format {
	case "", "text":
		return url.Values{}, nil
	case "json":
		return url.Values{"format": {"json"}}, nil
	default:
		return nil, api.BadField("format", "want text or json, got %q", format)
	}
}

// serve answers with what the proxy answers.
func (h *handlers) serve(w http.ResponseWriter, r *http.Request, path string, query url.Values) error {
	snap := h.config.Store.Snapshot()
	dp, err := h.routes.Find(r, snap, resources.VerbObserve, resources.Key{Type: resources.TypeDataplane,
		Mesh: r.PathValue("mesh"), Namespace: r.URL.Query().Get("namespace"), Name: r.PathValue("name")})
	if err != nil {
		return err
	}
	if zone := dp.Zone(); zone != "" && zone != h.config.Home.Zone {
		return api.NewError(http.StatusConflict, "Conflict", "the proxy is of zone "+zone+": ask the HTTP API of that zone")
	}
	address, streams, err := h.config.Admin(dp.Key)
	if err != nil {
		return api.NewError(http.StatusConflict, "Conflict", err.Error())
	}
	who, err := h.config.Assigned(dp)
	if err != nil || who.ID.IsZero() {
		return api.NewError(http.StatusConflict, "Conflict", "the Dataplane has no identity, by which the zone would know its "+
			"proxy: causewayctl svid says why")
	}
	answer, runs, err := h.config.Key.get(r.Context(), peer{address: address, id: who.ID, several: streams > 1,
		trusted: identity.BundlesOf(snap, dp.Mesh, h.config.Home)}, path, query)
	if err == nil && streams > 1 {
		api.Warn(w.Header(), amongSeveral(streams, runs))
	}
	switch {
	case errors.Is(err, ErrUnreachable):
		return api.NewError(http.StatusBadGateway, "Bad Gateway", err.Error()+": the proxy, or a firewall before it")
	case errors.Is(err, ErrTooLarge):
		return api.NewError(http.StatusBadGateway, "Bad Gateway", err.Error()+": ask with match, or on its own machine")
	case err != nil:
		return err
	}
	if path == "/config_dump" || path == "/certs" || query.Has("format") {
		if answer, err = hideSecrets(answer); err != nil {
			return api.NewError(http.StatusBadGateway, "Bad Gateway", err.Error())
		}
		return api.WriteLongJSON(w, json.RawMessage(answer))
	}
	// A proxy is not trusted with what a browser, or a terminal, makes of its answer.
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, err = printing.NewWriter(w).Write(answer)
	return err
}

// amongSeveral says which Envoy of several has answered.
func amongSeveral(streams int, runs time.Duration) string {
	which := "which of them answered is unknown"
	if runs > 0 {
		which = fmt.Sprintf("the one that answered has run for %s", runs)
	}
	return fmt.Sprintf("the Envoys of this Dataplane have %d streams to the zone, and share the address: %s", streams, which)
}
