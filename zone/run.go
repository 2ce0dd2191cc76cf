package zone

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/envoyadmin"
)

// Run runs the zone server. It serves until ctx ends, then drains and returns nil. Diagnostics are served from the
// start. It returns early with the first error that stops a part from working.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	cfg = cfg.withDefaults()
	return whileLeading(ctx, &cfg)
}

// run runs the zone on its data folder. It returns the store, if it was opened.
func run(ctx context.Context, cfg *Config) (*opened, error) {
	box, err := prepare(cfg)
	if err != nil {
		return nil, err
	}
	defer cfg.folder.Close()
	ports, err := listenFirst(cfg, box)
	if err != nil {
		return nil, err
	}
	defer ports.close()
	diagnostics := server.NewDiagnostics()
	diagnostics.Guard(cfg.Panics)
	diagnostics.SetStarting(errNotOpen)
	var o *opened
	err = server.Together(ctx,
		func(ctx context.Context) error { return diagnostics.Serve(ctx, ports.diagnostics) },
		func(ctx context.Context) error {
			var err error
			o, err = start(ctx, cfg, box, ports, diagnostics)
			return err
		})
	return o, err
}

// Why a zone is not ready while it starts.
var (
	errNotOpen   = errors.New("the store is not open yet")
	errNotJoined = errors.New("the zone has not joined its global yet; the log has the reason")
)

// start joins if necessary, opens the store and serves it. It returns what it opened, which is closed then.
func start(ctx context.Context, cfg *Config, box *secrets.Box, ports *ports,
	diagnostics *server.Diagnostics) (*opened, error) {
	memberships, err := enrolment.OpenHolder(cfg.DataDir, box, cfg.Now)
	if err != nil {
		return nil, err
	}
	memberships.InPlace, memberships.Keep = cfg.held, cfg.term.KeepFiles
	if cfg.Join != "" {
		diagnostics.SetStarting(errNotJoined)
	}
	if err := settle(ctx, memberships, cfg); err != nil {
		return nil, err
	}
	diagnostics.SetStarting(errNotOpen)
	cfg.Store.Registerer = diagnostics.Registry
	cfg.Store.Owner = archive.Header{Server: "zone", Zone: cfg.Zone, Version: server.Version()}
	cfg.Store.Prefix = cmp.Or(cfg.Store.Prefix, "/causeway/zones/"+cfg.Zone) // the name may come from the membership
	var o *opened
	err = cfg.Store.Insist(ctx, diagnostics.SetStarting, func() error {
		o, err = open(ctx, cfg, box)
		return err
	})
	if err != nil {
		return nil, err
	}
	o.memberships = memberships
	diagnostics.AddCheck("data folder", cfg.folder.Check)
	diagnostics.AddCheck("store", o.store.Healthy)
	diagnostics.AddCheck("audit log", func() error { return o.guard.Audit().Ready(ctx) })
	diagnostics.AddResources(cfg.DataDir)
	return o, errors.Join(serve(ctx, cfg, o, ports, diagnostics), o.close())
}

// serve wires the parts, in order of dependency, and runs them until ctx ends.
func serve(ctx context.Context, cfg *Config, o *opened, ports *ports, diagnostics *server.Diagnostics) error {
	if err := ports.listen(ctx, cfg, o.box, o.guard, diagnostics); err != nil {
		return err
	}
	sinks, err := cfg.sinks()
	if err != nil {
		return err
	}
	publisher, err := newPublisher(ctx, cfg, o)
	if err != nil {
		return err
	}
	authorities := publisher.Authorities
	held := openCheckpoint(cfg, o.box, diagnostics)
	defer held.Close() // after the last answer to a proxy
	sources := &externalSources{keeper: o.keeper, dir: cfg.ExternalSecretsDir, store: o.store, now: cfg.Now, log: cfg.Log}
	adminKey, err := envoyadmin.OpenKey(ctx, o.keeper, cfg.Log)
	if err != nil {
		return err
	}
	proxies := newProxies(cfg, o, proxyParts{authorities: authorities, checkpoint: held, sources: sources, sinks: sinks,
		adminPin: adminKey.Pin, own: ports.own}, diagnostics)
	observed := accessLog(cfg, o, sinks)
	known := newVersionFiles(cfg, o)
	admins := envoyadmin.New(envoyadmin.Config{Store: o.store, Home: o.home, Assigned: authorities.Assigned,
		Admin: proxies.Admin, Key: adminKey})
	link, err := newLink(ctx, cfg, o, linkParts{known: known, admins: admins, observed: &observed, registry: diagnostics.Registry, detail: diagnostics.Detail,
		proxies: func(reported func(uint64) bool) ([]tracker.ProxyBehind, uint32) { return behindOf(proxies, reported) }})
	if err != nil {
		return err
	}
	unsure := doubts(o, link, proxies, cfg.Now())
	routes := newRoutes(cfg, o, unsure, diagnostics)
	accesslog.Register(routes, observed)
	addRoutes(routes, cfg, o, unsure, publisher, sources)
	admins.Register(routes)
	addCallers(routes, cfg, o, &observed, unsure, authorities)
	(&operator{zone: cfg.Zone, link: link}).register(routes)
	spread := &rollout{zone: cfg.Zone, store: o.store, status: o.status, started: cfg.Now(),
		systemNamespace: cfg.SystemNamespace, statuses: proxies.SyncStatuses, link: link, routes: routes}
	routes.Handle(api.RouteRollout, spread.serve)
	bridge, err := newBridge(cfg, o, ports, spread, diagnostics)
	if err != nil {
		return err
	}
	diagnostics.AddExpiries(func() map[string]time.Time { return expiries(o.memberships, authorities, o.store) })
	service := newProxyService(ctx, cfg, o, ports, routes, proxies, authorities, link, bridge)
	if err := cfg.begin(ctx, o); err != nil {
		return err
	}
	return server.Together(ctx, func(ctx context.Context) error { return cfg.term.Run(ctx, o.store) }, o.guard.Issuer().Run, publisher.Run, proxies.Run, bridge.Run,
		newDiscovery(cfg, o, ports, bridge, authorities, proxies, diagnostics).Run, held.Run,
		func(ctx context.Context) error { return cfg.folder.Run(ctx, cfg.Log) },
		func(ctx context.Context) error { return ports.certificate.Run(ctx, cfg.Log) },
		func(ctx context.Context) error { return sources.follow(ctx, proxies.SourcesChanged) },
		func(ctx context.Context) error { return runLink(ctx, link, known) },
		func(ctx context.Context) error { return ports.serveNames(ctx, o) },
		func(ctx context.Context) error {
			return service.serve(ctx, ports, observed.Journal, diagnostics.Registry)
		},
		func(ctx context.Context) error { return server.ServeHTTP(ctx, ports.api, routes, cfg.Panics) },
		func(ctx context.Context) error { return ready(ctx, cfg, ports, diagnostics) })
}

// begin stores what a lead begins with, and says which files of the data folder must stay.
func (c *Config) begin(ctx context.Context, o *opened) error {
	c.folder.Need(append(server.CertificateFiles(tlsDir), enrolment.HeldPath, backend.File)...)
	return c.term.Start(ctx, o.store)
}

// ready reports that every port is served: in the log, in the ready file and to the service manager, until ctx ends.
func ready(ctx context.Context, cfg *Config, p *ports, diagnostics *server.Diagnostics) error {
	diagnostics.SetStarting(nil)
	addresses := p.addresses()
	cfg.Log.Info("zone is ready", "zone", cfg.Zone, "api", addresses["api"], "xds", addresses["xds"],
		"diagnostics", addresses["diagnostics"], "global", cfg.Global)
	if err := server.WriteReadyFile(cfg.ReadyFile, addresses); err != nil {
		return err
	}
	return diagnostics.Notify(ctx, p.diagnostics.Addr(), cfg.Log)
}
