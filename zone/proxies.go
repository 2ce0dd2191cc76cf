package zone

import (
	"context"
	"crypto/x509"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kubernetes"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/checkpoint"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/rbac"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// proxyParts are the dependencies of the proxies' configuration, besides what a start opens.
type proxyParts struct {
	authorities *identity.Authorities
	checkpoint  *checkpoint.Cache
	sources     *externalSources
	// sinks are the destinations of the proxies' access logs.
	sinks []accesslog.Sink
	// adminPin identifies the key that reads admin interfaces.
	adminPin string
	// own reports whether an address is a port of this server.
	own func(address string, port uint32) bool
}

// newProxies returns the configuration of the zone's proxies.
func newProxies(cfg *Config, o *opened, parts proxyParts, diagnostics *server.Diagnostics) *xds.Proxies {
	return xds.New(xds.Config{
		Own: parts.own, AdminPin: parts.adminPin, Sources: parts.sources.read, AccessLogs: parts.sinks, Checkpoint: parts.checkpoint,
		Store: o.fields.Opened(o.store, cfg.Log), LastRead: &o.lastRead, Status: o.status, Home: o.home, Authorities: parts.authorities,
		Instance: o.instance, RBACForm: rbac.Form(cfg.RBACForm), Now: cfg.Now, Log: cfg.Log,
		Registerer: diagnostics.Registry, Tracer: cfg.Tracer, Panics: cfg.Panics,
	})
}

// proxyService serves proxies: discovery and the access log collector, behind the same admission.
type proxyService struct {
	cfg       *Config
	store     store.Reader
	proxies   *xds.Proxies
	admission *xds.Admission
	rotation  *identity.Rotation
}

// newProxyService returns the services for proxies, and adds their routes and conditions. link is nil for a zone that
// runs alone, bridge for one without a Kubernetes cluster.
func newProxyService(ctx context.Context, cfg *Config, o *opened, p *ports, routes *api.Server,
	proxies *xds.Proxies, authorities *identity.Authorities, link *kds.Zone, bridge *kubernetes.Bridge) *proxyService {
	issuer := o.guard.Issuer()
	config := xds.AdmissionConfig{
		Required: cfg.XDSRequireCredentials || !server.IsLoopback(p.xds.Addr()),
		Tokens:   issuer, Store: o.store, Identity: authorities.Expect,
		Authorities: authoritiesFor(o.store, authorities), Now: cfg.Now, Log: cfg.Log,
		Refused: func(r xds.Refusal) { recordRefused(ctx, cfg, o.guard.Audit(), r) },
	}
	if pods := bridge.PodTokens(); pods != nil {
		config.Pods, config.Home = pods, o.home
	}
	admission := xds.NewAdmission(config)
	ingresses := &ingressConditions{zone: o.home.Zone, started: cfg.Now(), presence: proxies.Ingress}
	routes.AddConditions(ingresses.of)
	egresses := &egressConditions{store: o.store, home: o.home, started: cfg.Now(), presence: proxies.Egress}
	routes.AddConditions(egresses.of)
	(&svidHandler{store: o.store, home: o.home, authorities: authorities, admission: admission}).register(routes)
	known := &propagation{home: o.home, store: o.store, authorities: authorities, link: link,
		statuses: proxies.SyncStatuses, awaited: proxies.Awaited}
	(&keyHandler{zone: o.home.Zone, store: o.store, issuer: issuer, authorities: authorities,
		unaware: known.unaware}).register(routes)
	return &proxyService{cfg: cfg, store: o.store, proxies: proxies, admission: admission,
		rotation: &identity.Rotation{Store: o.store, Authorities: authorities, Overlap: cfg.IdentityOverlap,
			Known: known.unaware, Now: cfg.Now, Log: cfg.Log}}
}

// serve serves proxies until ctx ends.
func (s *proxyService) serve(ctx context.Context, p *ports, journal *accesslog.Journal,
	registry prometheus.Registerer) error {
	collector := accesslog.NewCollector(ctx, accesslog.CollectorConfig{
		Store: s.store, Admit: s.admission.Admit, Identify: s.admission.Identify, Journal: journal,
		Registerer: registry, Now: s.cfg.Now, Panics: s.cfg.Panics,
	})
	return server.Together(ctx, s.admission.Run, s.rotation.Run, func(ctx context.Context) error {
		return xds.Serve(ctx, p.xds, xds.WithClientCertificates(p.xdsTLS), s.proxies, s.admission, collector)
	})
}

// recordRefused writes a refusal to the audit log. If that fails, nothing needs to be undone: the stream is refused
// either way.
func recordRefused(ctx context.Context, cfg *Config, audit *access.Log, r xds.Refusal) {
	err := audit.Record(ctx, access.Entry{
		Event: access.EventLogin, Outcome: access.Denied, Method: access.Method(r.Method), From: r.Address, Reason: r.Reason,
		Verb: resources.VerbRead, Type: string(resources.TypeDataplane), Name: r.Node,
	})
	if err != nil {
		cfg.Log.Error("cannot record a refused stream", "error", err)
	}
}

// authoritiesFor returns a function that finds this zone's authorities for a trust domain, in all meshes.
func authoritiesFor(durable store.Reader,
	authorities *identity.Authorities) func(spiffeid.TrustDomain) []*x509.Certificate {
	return func(domain spiffeid.TrustDomain) []*x509.Certificate {
		var out []*x509.Certificate
		for mesh := range durable.Snapshot().List(store.Query{Type: resources.TypeMesh}) {
			out = append(out, authorities.Signing(mesh.Name, domain)...)
		}
		return out
	}
}
