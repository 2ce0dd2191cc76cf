package zone

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/tokens"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// proxyParts are what the port for proxies is served with.
type proxyParts struct {
	zone        string
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

// refused writes a refusal into the audit log. There is nothing to be undone when that fails: the stream is refused anyway.
func (p *proxyParts) refused(ctx context.Context, cfg *Config, r xds.Refusal) {
	err := p.audit.Record(ctx, access.Entry{
		Event: access.EventLogin, Outcome: access.Denied, Method: access.Method(r.Method), From: r.Address, Reason: r.Reason,
		Verb: resources.VerbRead, Type: string(resources.TypeDataplane), Name: r.Node,
	})
	if err != nil {
		cfg.Log.Error("cannot record a refused stream", "error", err)
	}
}

// knownEverywhere reports whether the authorities of a realm, as they are now, are published, have reached the global, and are
// acknowledged by the zone's own proxies. When other zones have them is not known here: Config.IdentityOverlap is for those.
func (p *proxyParts) knownEverywhere(realm string) bool {
	all, err := p.authorities.All(realm)
	if err != nil || len(all) == 0 {
		return false
	}
	mesh, snapshot := identity.MeshOfRealm(realm), p.durable.Snapshot()
	if believed := identity.BundlesOf(snapshot, mesh); slices.ContainsFunc(all, func(one *identity.Authority) bool { return !believed.Has(one) }) {
		return false
	}
	published := snapshot.Get(identity.TrustKey(realm, p.zone))
	if p.link != nil && published != nil {
		if zones := p.link.Rollout(published).Zones; zones.Acknowledged < zones.Total {
			return false
		}
	}
	for _, one := range p.proxies.Standings() {
		if one.Behind && one.Dataplane.Mesh == mesh {
			return false
		}
	}
	return true
}

// serveProxies runs what proxies connect to: discovery and the collector of their logs, behind the same gate.
func serveProxies(ctx context.Context, group *errgroup.Group, cfg *Config, p *ports, parts *proxyParts) {
	admission := xds.NewAdmission(xds.AdmissionConfig{
		Required: cfg.XDSRequireCredentials || !server.IsLoopback(p.xds.Addr()),
		Tokens:   parts.issuer, Store: parts.durable, Identity: parts.authorities.Expect, Now: cfg.Now, Log: cfg.Log,
		Refused: func(r xds.Refusal) { parts.refused(ctx, cfg, r) },
	})
	collector := accesslog.NewCollector(ctx, accesslog.CollectorConfig{
		Store: parts.durable, Identify: admission.Identify, Journal: parts.journal, Registerer: parts.registry, Now: cfg.Now,
	})
	(&svidHandler{store: parts.durable, authorities: parts.authorities, admission: admission}).register(parts.routes)
	(&keyHandler{store: parts.durable, issuer: parts.issuer, authorities: parts.authorities}).register(parts.routes)
	rotation := &identity.Rotation{
		Store: parts.durable, Authorities: parts.authorities, Overlap: cfg.IdentityOverlap, Known: parts.knownEverywhere, Now: cfg.Now, Log: cfg.Log,
	}
	group.Go(func() error { return rotation.Run(ctx) })
	group.Go(func() error { return parts.issuer.Run(ctx) })
	group.Go(func() error { return admission.Run(ctx) })
	group.Go(func() error {
		return xds.Serve(ctx, p.xds, xds.WithClientCertificates(p.xdsTLS), parts.proxies, admission, collector)
	})
}
