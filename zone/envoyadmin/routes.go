package envoyadmin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// Config configures the answers. All fields are required.
type Config struct {
	Store store.Reader
	Home  resources.Home
	// Assigned returns the identity of a Dataplane of the zone.
	Assigned func(dp *resources.Resource) (identity.Assigned, error)
	// Admin returns where the proxy of a Dataplane exposes its admin interface, and how many streams the Dataplane's
	// Envoys have, like xds.Proxies.Admin.
	Admin func(dp resources.Key) (address string, streams int, err error)
	Key   *Key
}

// Admins answers questions about the zone's Envoys. It is safe for concurrent use.
type Admins struct{ config Config }

// New returns the Admins of a zone.
func New(c Config) *Admins { return &Admins{c} }

// Register adds the routes to a zone's API.
func (a *Admins) Register(routes *api.Server) {
	for subject, route := range api.ProxyRoutes {
		routes.Handle(route, func(w http.ResponseWriter, r *http.Request) error {
			q, err := api.ProxyQuestionOf(r, subject)
			if err != nil {
				return err
			}
			snap := a.config.Store.Snapshot()
			dp, err := routes.Find(r, snap, resources.VerbObserve, resources.Key{Type: resources.TypeDataplane,
				Mesh: r.PathValue("mesh"), Namespace: r.URL.Query().Get("namespace"), Name: r.PathValue("name")})
			if err != nil {
				return err
			}
			answer, err := a.ask(r.Context(), snap, dp, q)
			if err != nil {
				return err
			}
			return api.WriteProxyAnswer(w, q, answer)
		})
	}
}

// Answer answers a question of the global, if the caller may observe the Dataplane. The names are those of this zone.
// Errors are those of the API.
func (a *Admins) Answer(ctx context.Context, mesh, namespace, name string, q api.ProxyQuestion) (*api.ProxyAnswer, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	snap := a.config.Store.Snapshot()
	key := resources.Key{Type: resources.TypeDataplane, Mesh: mesh, Namespace: namespace, Name: name}
	dp := snap.Get(key)
	if dp == nil {
		return nil, api.NotFound(key.String())
	}
	return a.ask(ctx, snap, dp, q)
}

// ask returns the response of a Dataplane's proxy, without secrets.
func (a *Admins) ask(ctx context.Context, snap store.Snapshot, dp *resources.Resource, q api.ProxyQuestion) (*api.ProxyAnswer,
	error) {
	if zone := dp.Zone(); zone != "" && zone != a.config.Home.Zone {
		return nil, conflict("the proxy is of zone " + zone + ": ask the global, or the HTTP API of that zone")
	}
	address, streams, err := a.config.Admin(dp.Key)
	if err != nil {
		return nil, conflict(err.Error())
	}
	who, err := a.config.Assigned(dp)
	if err != nil || who.ID.IsZero() {
		return nil, conflict("the Dataplane has no identity, by which the zone would know its proxy: causewayctl svid says why")
	}
	path, query := target(q)
	body, runs, err := a.config.Key.get(ctx, peer{address: address, id: who.ID, several: streams > 1,
		trusted: identity.BundlesOf(snap, dp.Mesh, a.config.Home)}, path, query)
	switch {
	case errors.Is(err, ErrUnreachable):
		return nil, badGateway(err.Error() + ": the proxy, or a firewall before it")
	case errors.Is(err, ErrTooLarge):
		return nil, badGateway(err.Error() + ": ask with match, or on its own machine")
	case err != nil:
		return nil, err
	}
	answer := &api.ProxyAnswer{Body: body}
	if streams > 1 {
		answer.Warning = amongSeveral(streams, runs)
	}
	if !q.IsJSON() {
		return answer, nil
	}
	if answer.Body, err = hideSecrets(body); err != nil {
		return nil, badGateway(err.Error())
	}
	return answer, nil
}

// amongSeveral identifies the Envoy that has answered among several.
func amongSeveral(streams int, runs time.Duration) string {
	which := "which of them answered is unknown"
	if runs > 0 {
		which = fmt.Sprintf("the one that answered has run for %s", runs)
	}
	return fmt.Sprintf("the Envoys of this Dataplane have %d streams to the zone, and share the address: %s", streams, which)
}

// target returns the path and query of a question for Envoy.
func target(q api.ProxyQuestion) (path string, query url.Values) {
	query = url.Values{}
	if q.JSON {
		query.Set("format", "json")
	}
	switch q.Subject {
	case api.ProxyConfig:
		return "/config_dump", url.Values{"include_eds": {""}}
	case api.ProxyCertificates:
		return "/certs", nil
	case api.ProxyClusters:
		return "/clusters", query
	}
	if !q.Unused {
		query.Set("usedonly", "") // leave out metrics that Envoy has never counted
	}
	if q.Match != "" {
		query.Set("filter", q.Match)
	}
	return "/stats", query
}

func conflict(why string) error { return api.NewError(http.StatusConflict, "Conflict", why) }

func badGateway(why string) error { return api.NewError(http.StatusBadGateway, "Bad Gateway", why) }
