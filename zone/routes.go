package zone

import (
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/callers"
	"github.com/causeway-mesh/causeway/zone/explain"
	"github.com/causeway-mesh/causeway/zone/hostnames"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/inspect"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// newRoutes returns the HTTP API, with the routes that both servers serve.
func newRoutes(cfg *Config, o *opened, doubts *inspect.Doubts, diagnostics *server.Diagnostics) *api.Server {
	return api.New(api.Config{
		Outdated: doubts.Outdates, Store: o.store, Status: o.status, Home: o.home, Guard: o.guard, Fields: o.fields, Log: cfg.Log,
		Registerer: diagnostics.Registry, NamespaceLimits: cfg.NamespaceLimits, Now: cfg.Now, Version: server.Version(),
		ClusterID: cfg.clusterID, InstanceID: o.instance, Tracer: cfg.Tracer, Panics: cfg.Panics, Page: cfg.Page,
	})
}

// doubts returns the conditions that make a zone's answers uncertain. link is nil for a zone that runs alone.
func doubts(o *opened, link *kds.Zone, proxies *xds.Proxies, started time.Time) *inspect.Doubts {
	out := &inspect.Doubts{Status: o.status, Started: started,
		Behind: func(dataplane resources.Key, _ string) (string, bool) { return proxies.Behind(dataplane) }}
	if link != nil {
		out.Away, out.Waiting, out.Comparing = link.Away, link.Waiting, link.Comparing
	}
	return out
}

// addRoutes adds the routes that only a zone can serve.
func addRoutes(routes *api.Server, cfg *Config, o *opened, doubts *inspect.Doubts, publisher *identity.Publisher,
	sources *externalSources) {
	routes.ServeBackup(archive.Header{Server: "zone", Zone: cfg.Zone}, func() ([]archive.File, error) {
		return archive.Collect(cfg.DataDir, archive.Folders("zone")...)
	})
	routes.Handle(api.RouteTrust, (&trustHandler{store: o.store, home: o.home, routes: routes}).serve)
	if cfg.Global != "" { // first: later previews use it
		routes.AddPreview(forecastSync(cfg.Zone))
	}
	shortfalls := &inspect.Shortfalls{Status: o.status, Now: cfg.Now}
	inspect.Register(routes, inspect.Config{Store: o.store, Zone: cfg.Zone, SystemNamespace: cfg.SystemNamespace,
		Assigned: publisher.Authorities.Assigned, Shortfalls: shortfalls, LastRead: &o.lastRead})
	routes.AddConditions((&identityConditions{store: o.store, zone: cfg.Zone, authorities: publisher.Authorities,
		publisher: publisher}).of)
	names := &hostnames.Status{Store: o.store, Home: o.home}
	routes.AddStatus(names.Fields)
	routes.AddConditions(names.Conditions)
	inspect.RegisterPermissions(routes, o.store, explain.Options{SystemNamespace: cfg.SystemNamespace, Zone: cfg.Zone,
		Shortfalls: shortfalls.Of, Doubts: doubts.Of})
	routes.Handle(api.RouteReplicas, newReplicas(cfg, o).serve)
	sources.register(routes)
	(&tokenHandler{store: o.store, issuer: o.guard.Issuer(), now: cfg.Now}).register(routes)
}

// accessLog returns what keeps, and answers by, what proxies log.
func accessLog(cfg *Config, o *opened, sinks []accesslog.Sink) accesslog.Config {
	return accesslog.Config{Store: o.store, Zone: cfg.Zone, Journal: accesslog.NewJournal(cfg.Now(), 0),
		Collecting: slices.Contains(sinks, accesslog.Service), Now: cfg.Now}
}

// addCallers adds the route that reports who may call whom.
func addCallers(routes *api.Server, cfg *Config, o *opened, observed *accesslog.Config,
	doubts *inspect.Doubts, authorities *identity.Authorities) {
	callers.Register(routes, callers.Config{Store: o.store, Status: o.status, Zone: cfg.Zone,
		SystemNamespace: cfg.SystemNamespace, Journal: observed.Journal, Collecting: observed.Collecting,
		Assignments: authorities.Assignments, Away: doubts.Away, Waiting: doubts.Waiting, Comparing: doubts.Incomplete,
		Behind: doubts.Behind})
}
