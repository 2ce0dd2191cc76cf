package inspect

import (
	"net/http"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Config configures the endpoints.
type Config struct {
	// Store is the server's own. Required.
	Store store.Reader
	// Zone is a zone server's own zone; empty on the global.
	Zone string
	// SystemNamespace is the server's own; empty means resources.DefaultSystemNamespace.
	SystemNamespace string
	// Crosses reports, on the global, whether a resource reaches a zone. Nil means that all do, as in a zone, for the
	// resources that it has.
	Crosses func(r *resources.Resource, zone string) bool
	// Assigned returns, in a zone, the current identity of its Dataplanes. Nil means the identity when every
	// MeshIdentity is ready.
	Assigned func(dp *resources.Resource) (identity.Assigned, error)
	// Shortfalls are the reports of proxies about policies. Nil means none.
	Shortfalls *Shortfalls
	// LastRead reads policies that are written. Who else reads them may share it; nil if nobody does.
	LastRead *matching.LastRead
}

func (c *Config) assigned(snap store.Snapshot, dp *resources.Resource) (identity.Assigned, error) {
	if c.Assigned != nil {
		return c.Assigned(dp)
	}
	return identity.AssignmentsIn(snap, dp.Mesh, dp.Zone(), nil).Of(dp)
}

func (c *Config) crosses(r *resources.Resource, zone string) bool {
	return c.Crosses == nil || r.Zone() == zone || c.Crosses(r, zone)
}

// Register adds the endpoints to a server's API, and hooks for policy conditions and dry runs.
func Register(server *api.Server, c Config) {
	if c.SystemNamespace == "" {
		c.SystemNamespace = resources.DefaultSystemNamespace
	}
	h := &handlers{views: &views{config: &c}, server: server}
	server.Handle(api.RouteProxyRules, h.rules)
	server.Handle(api.RouteProxyPolicies, h.proxyPolicies)
	server.Handle(api.RouteProxyLayout, h.layout)
	server.Handle(api.RouteInboundPolicies, h.inboundPolicies)
	server.Handle(api.RouteOutboundPolicies, h.outboundPolicies)
	server.Handle(api.RouteTouchedDataplanes, h.touched)
	server.Handle(api.RouteServicePolicies, h.servicePolicies)
	server.Handle(api.RouteOpenAPI, openAPI)
	server.AddConditions(h.conditions)
	server.AddPreview(h.forecast)
	server.AddWarnings(h.policyWarnings)
}

type handlers struct {
	views *views
	// server authorises the caller.
	server *api.Server
}

// asked is the proxy in question.
type asked struct {
	*view
	resource *resources.Resource
	proxy    *matching.Proxy
	policies []*matching.Policy
	// left filters out what the caller may not read.
	left *leftOut
	// grouped makes destinations with the same rules one.
	grouped bool
}

// proxyOf returns the Dataplane that the path names, in the namespace that the query names.
func (h *handlers) proxyOf(r *http.Request) (*asked, error) {
	return h.proxyAt(r, keyOf(r, resources.TypeDataplane))
}

// proxyAt is proxyOf for a key, whose name may be a KRI.
func (h *handlers) proxyAt(r *http.Request, key resources.Key) (*asked, error) {
	v := h.views.of(key.Mesh)
	if v == nil {
		return nil, h.server.MissingMesh(r, h.views.config.Store.Snapshot(), key.Mesh)
	}
	found, err := h.server.Find(r, v.snap, resources.VerbRead, key)
	if err != nil {
		return nil, err
	}
	proxy, err := matching.NewProxy(found)
	if err != nil {
		return nil, err
	}
	proxy = proxy.WithServices(v.services).WithGateways(v.gateways, v.config.SystemNamespace)
	return &asked{view: v, resource: found, proxy: proxy, policies: v.candidates(proxy),
		left: newLeftOut(h.server.Reader(r))}, nil
}

func keyOf(r *http.Request, t resources.Type) resources.Key {
	return resources.Key{Type: t, Mesh: r.PathValue("mesh"), Namespace: r.URL.Query().Get("namespace"),
		Name: r.PathValue("name")}
}
