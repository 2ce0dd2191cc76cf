package zone

import (
	"context"
	"crypto/x509"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/tokens"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/checkpoint"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// proxyParts are the dependencies of the server for proxies.
type proxyParts struct {
	home        resources.Home
	checkpoint  *checkpoint.Cache
	proxies     *xds.Proxies
	issuer      *tokens.Issuer
	durable     store.Reader
	authorities *identity.Authorities
	journal     *accesslog.Journal
	registry    prometheus.Registerer
	audit       *access.Log
	routes      *api.Server
	link        *kds.Zone // nil for a zone that runs alone
}

// refused writes a refusal into the audit log. If that fails, nothing must be undone: the stream is refused anyway.
func (p *proxyParts) refused(ctx context.Context, cfg *Config, r xds.Refusal) {
	err := p.audit.Record(ctx, access.Entry{
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

// serveProxies runs the services for proxies: discovery and the access log collector, behind the same admission.
func serveProxies(ctx context.Context, group *errgroup.Group, cfg *Config, p *ports, parts *proxyParts) {
	admission := xds.NewAdmission(xds.AdmissionConfig{
		Required: cfg.XDSRequireCredentials || !server.IsLoopback(p.xds.Addr()),
		Tokens:   parts.issuer, Store: parts.durable, Identity: parts.authorities.Expect,
		Authorities: authoritiesFor(parts.durable, parts.authorities), Now: cfg.Now, Log: cfg.Log,
		Refused: func(r xds.Refusal) { parts.refused(ctx, cfg, r) },
	})
	collector := accesslog.NewCollector(ctx, accesslog.CollectorConfig{
		Store: parts.durable, Admit: admission.Admit, Identify: admission.Identify, Journal: parts.journal,
		Registerer: parts.registry, Now: cfg.Now, Panics: cfg.Panics,
	})
	ingresses := &ingressConditions{zone: parts.home.Zone, started: cfg.Now(), presence: parts.proxies.Ingress}
	parts.routes.AddConditions(ingresses.of)
	egresses := &egressConditions{store: parts.durable, home: parts.home, started: cfg.Now(), presence: parts.proxies.Egress}
	parts.routes.AddConditions(egresses.of)
	(&svidHandler{store: parts.durable, home: parts.home, authorities: parts.authorities,
		admission: admission}).register(parts.routes)
	known := &propagation{home: parts.home, store: parts.durable, authorities: parts.authorities, link: parts.link,
		statuses: parts.proxies.SyncStatuses, awaited: parts.proxies.Awaited}
	(&keyHandler{zone: parts.home.Zone, store: parts.durable, issuer: parts.issuer, authorities: parts.authorities,
		unaware: known.unaware}).register(parts.routes)
	rotation := &identity.Rotation{
		Store: parts.durable, Authorities: parts.authorities, Overlap: cfg.IdentityOverlap, Known: known.unaware,
		Now: cfg.Now, Log: cfg.Log,
	}
	group.Go(func() error { return rotation.Run(ctx) })
	group.Go(func() error { return parts.checkpoint.Run(ctx) })
	group.Go(func() error { return parts.issuer.Run(ctx) })
	group.Go(func() error { return admission.Run(ctx) })
	group.Go(func() error {
		return xds.Serve(ctx, p.xds, xds.WithClientCertificates(p.xdsTLS), parts.proxies, admission, collector)
	})
}
