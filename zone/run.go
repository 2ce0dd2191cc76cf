package zone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/kubernetes"
	"github.com/causeway-mesh/causeway/place"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/tokens"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/checkpoint"
	"github.com/causeway-mesh/causeway/zone/explain"
	"github.com/causeway-mesh/causeway/zone/hostnames"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/inspect"
	"github.com/causeway-mesh/causeway/zone/rbac"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// The contents of the zone's data directory.
const (
	identityDir = "identity" // one folder for each mesh's authority
	knownDir    = "known"    // known copies of the global; may be deleted, it only saves work after a restart
	tlsDir      = "tls"      // the serving certificate of ports off loopback
	// checkpointFile records what proxies were given, sealed. It may be deleted; it only spares proxies a change after a
	// restart.
	checkpointFile = "holdings.sealed"
)

// Run runs the zone server. It serves until ctx ends, then drains and returns nil. Diagnostics are served from the start. It returns early with the first
// error that stops a part from working.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	cfg = cfg.withDefaults()
	box, err := prepare(&cfg)
	if err != nil {
		return err
	}
	defer cfg.folder.Close()
	ports, err := listenFirst(&cfg, box)
	if err != nil {
		return err
	}
	defer ports.close()
	diagnostics := server.NewDiagnostics()
	diagnostics.Guard(cfg.Panics)
	diagnostics.SetStarting(errNotOpen)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return diagnostics.Serve(ctx, ports.diagnostics) })
	group.Go(func() error { return start(ctx, &cfg, box, ports, diagnostics) })
	return group.Wait()
}

// Why a zone is not ready while it starts.
var (
	errNotOpen   = errors.New("the store is not open yet")
	errNotJoined = errors.New("the zone has not joined its global yet; the log says what it waits for")
)

// start joins if it has to, opens the store and serves it.
func start(ctx context.Context, cfg *Config, box *secrets.Box, ports *ports, diagnostics *server.Diagnostics) error {
	memberships, err := enrolment.OpenHolder(cfg.DataDir, box, cfg.Now)
	if err != nil {
		return err
	}
	memberships.InPlace = cfg.folder.Check
	if cfg.Join != "" {
		diagnostics.SetStarting(errNotJoined)
	}
	if err := settle(ctx, memberships, cfg); err != nil {
		return err
	}
	diagnostics.SetStarting(errNotOpen)
	cfg.Store.Registerer = diagnostics.Registry
	cfg.Store.Owner = archive.Header{Server: "zone", Zone: cfg.Zone, Version: server.Version()}
	cfg.Store.Prefix = cmp.Or(cfg.Store.Prefix, "/causeway/zones/"+cfg.Zone) // the name may come from the membership
	var durable *backend.Store
	var guard *access.Guard
	err = cfg.Store.Insist(ctx, diagnostics.SetStarting, func() error {
		durable, guard, err = open(ctx, cfg, box)
		return err
	})
	if err != nil {
		return err
	}
	diagnostics.AddCheck("data folder", cfg.folder.Check)
	diagnostics.AddCheck("store", durable.Healthy)
	diagnostics.AddCheck("audit log", func() error { return guard.Audit().Ready(ctx) })
	diagnostics.AddResources(cfg.DataDir)
	err = serve(ctx, cfg, durable, guard, memberships, ports, diagnostics)
	return errors.Join(err, durable.Close(), guard.Audit().Close())
}

// open opens the store and the guard of the HTTP API. It leaves nothing open if it fails.
func open(ctx context.Context, cfg *Config, box *secrets.Box) (*backend.Store, *access.Guard, error) {
	durable, err := backend.OpenSealed(ctx, cfg.Store, secrets.NewFields(box))
	if err != nil {
		return nil, nil, err
	}
	issuer, err := tokens.Open(ctx, tokens.Config{Keeper: secrets.NewKeeper(durable, box), Now: cfg.Now, Log: cfg.Log})
	if err != nil {
		return nil, nil, errors.Join(err, durable.Close())
	}
	guard, err := access.Open(ctx, cfg.Access, access.Parts{DataDir: cfg.DataDir, Store: durable, Issuer: issuer, Now: cfg.Now, Log: cfg.Log})
	if err != nil {
		return nil, nil, errors.Join(err, durable.Close())
	}
	return durable, guard, nil
}

// prepare creates the data directory, opens the box for its secrets, and removes the ready file of an earlier run.
func prepare(cfg *Config) (*secrets.Box, error) {
	if err := errors.Join(server.MakeDataDir(cfg.DataDir, cfg.Log), archive.Unfinished(cfg.DataDir)); err != nil {
		return nil, err
	}
	var err error
	if cfg.clusterID, err = server.ClusterID(filepath.Join(cfg.DataDir, server.ClusterIDFile)); err != nil {
		return nil, err
	}
	if cfg.ReadyFile != "" {
		if err := os.Remove(cfg.ReadyFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("ready file: %w", err)
		}
	}
	box, err := secrets.OpenBox(secrets.Config{KeyFile: cfg.SecretsKeyFile, Passphrase: cfg.SecretsPassphrase, Dir: cfg.DataDir, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	return box, cfg.hold()
}

// hold makes the server notice when its data folder, or a file in it that a restart needs, is gone.
func (c *Config) hold() (err error) {
	c.folder, err = place.HoldData(c.DataDir, server.ClusterIDFile, secrets.KeptIn(c.SecretsKeyFile, c.SecretsPassphrase)...)
	if err == nil {
		c.Store.Held = c.folder.Check
	}
	return err
}

// serve wires the parts in order of dependency and runs them.
func serve(ctx context.Context, cfg *Config, durable store.Store, guard *access.Guard, memberships *enrolment.Holder, ports *ports, diagnostics *server.Diagnostics) error {
	home := resources.Home{Zone: cfg.Zone, Alone: cfg.Global == "", SystemNamespace: cfg.SystemNamespace}
	instance := uuid.NewString()
	// Insights are written continually. A long changelog would keep all of their past versions.
	status := store.NewMemoryWith(store.ViewConfig{WindowCommits: 64, WindowChanges: 1024, Now: cfg.Now})
	if err := errors.Join(api.EnsureDefaults(ctx, durable, home), api.EnsureInitialPolicies(ctx, durable, home)); err != nil {
		return err
	}
	keeper, fields := secrets.NewKeeper(durable, memberships.Box()), secrets.NewFields(memberships.Box())
	sinks, err := cfg.sinks()
	if err != nil {
		return err
	}
	authorities := identity.NewAuthorities(identity.Config{Keeper: keeper, Store: durable, Dir: filepath.Join(cfg.DataDir, identityDir), Zone: cfg.Zone, Now: cfg.Now})
	publisher := &identity.Publisher{Store: durable, Home: home, Authorities: authorities, Log: cfg.Log}
	if err := publishAll(ctx, publisher, durable); err != nil {
		return err
	}
	held := openCheckpoint(cfg, memberships.Box(), diagnostics)
	defer held.Close() // after the last answer to a proxy
	sources := &externalSources{keeper: keeper, dir: cfg.ExternalSecretsDir, store: durable, now: cfg.Now, log: cfg.Log}
	proxies := xds.New(xds.Config{
		Own:     func(address string, port uint32) bool { return ports.own(address, port) },
		Sources: sources.read, AccessLogs: sinks, Checkpoint: held, Store: fields.Opened(durable, cfg.Log), Status: status, Home: home, Authorities: authorities, Instance: instance,
		RBACForm: rbac.Form(cfg.RBACForm), Now: cfg.Now, Log: cfg.Log, Registerer: diagnostics.Registry, Tracer: cfg.Tracer, Panics: cfg.Panics,
	})
	var bridge *kubernetes.Bridge // before a request is served
	routes := api.New(api.Config{
		Store: durable, Status: status, Home: home, Guard: guard, Fields: fields, Log: cfg.Log, Registerer: diagnostics.Registry,
		NamespaceLimits: cfg.NamespaceLimits, Now: cfg.Now, Objects: objectsOf(cfg, &bridge),
		Version: server.Version(), ClusterID: cfg.clusterID, InstanceID: instance, Tracer: cfg.Tracer, Panics: cfg.Panics,
	})
	addRoutes(routes, cfg, durable, status, publisher)
	sources.register(routes)
	(&tokenHandler{store: durable, issuer: guard.Issuer(), now: cfg.Now}).register(routes)
	journal := accesslog.NewJournal(cfg.Now(), 0)
	accesslog.Register(routes, accesslog.Config{Store: durable, Journal: journal, Collecting: slices.Contains(sinks, accesslog.Service), Now: cfg.Now})
	known := kds.NewVersionFiles(filepath.Join(cfg.DataDir, knownDir), cfg.Log, durable)
	link, err := newLink(ctx, cfg, linkParts{memberships: memberships, keeper: keeper, known: known, fields: fields, durable: durable, status: status, instance: instance, registry: diagnostics.Registry, detail: diagnostics.Detail,
		proxies: func(told func(uint64) bool) ([]tracker.ProxyBehind, uint32) { return behindOf(proxies, told) }})
	if err != nil {
		return err
	}
	(&operator{zone: cfg.Zone, link: link}).register(routes)
	spread := &rollout{zone: cfg.Zone, store: durable, status: status, started: cfg.Now(), systemNamespace: cfg.SystemNamespace, statuses: proxies.SyncStatuses, link: link, routes: routes}
	routes.Handle(api.RouteRollout, spread.serve)
	if bridge, err = newBridge(cfg, home, spread, memberships.Box(), diagnostics); err == nil {
		err = ports.listen(ctx, cfg, memberships.Box(), guard, diagnostics)
	}
	if err != nil {
		return err
	}
	diagnostics.AddExpiries(func() map[string]time.Time { return expiries(memberships, authorities, durable) })
	group, ctx := errgroup.WithContext(ctx)
	runAll(ctx, group, publisher.Run, proxies.Run, bridge.Run, func(ctx context.Context) error { return sources.follow(ctx, proxies.SourcesChanged) })
	serveProxies(ctx, group, cfg, ports, &proxyParts{
		checkpoint: held, home: home, routes: routes, link: link, proxies: proxies, issuer: guard.Issuer(), durable: durable, authorities: authorities, journal: journal, registry: diagnostics.Registry, audit: guard.Audit(),
	})
	group.Go(func() error { return server.ServeHTTP(ctx, ports.api, routes, cfg.Panics) })
	runLink(ctx, group, link, known)
	ports.tend(ctx, group, diagnostics, cfg.Log)
	diagnostics.SetStarting(nil)
	group.Go(func() error { return announce(ctx, cfg, ports) })
	return group.Wait()
}

// runAll runs parts of the server in a group.
func runAll(ctx context.Context, group *errgroup.Group, parts ...func(context.Context) error) {
	for _, run := range parts {
		group.Go(func() error { return run(ctx) })
	}
}

// watchFolder watches the data folder and the files in it that a restart needs.
func watchFolder(ctx context.Context, cfg *Config) error {
	cfg.folder.Need(append(server.CertificateFiles(tlsDir), enrolment.HeldPath, backend.File)...)
	return cfg.folder.Run(ctx, cfg.Log)
}

// runLink keeps up the session with the global, if there is one.
func runLink(ctx context.Context, group *errgroup.Group, link *kds.Zone, known *kds.VersionFiles) {
	if link == nil {
		return
	}
	group.Go(func() error { return link.Run(ctx) })
	group.Go(func() error { return known.Run(ctx) })
}

// openCheckpoint reads the record of what proxies were given before.
func openCheckpoint(cfg *Config, box *secrets.Box, diagnostics *server.Diagnostics) *checkpoint.Cache {
	return checkpoint.Open(checkpoint.Config{
		Path: filepath.Join(cfg.DataDir, checkpointFile), Box: box, Now: cfg.Now, Log: cfg.Log, Registerer: diagnostics.Registry,
	})
}

// addRoutes adds the routes that only a zone can serve.
func addRoutes(routes *api.Server, cfg *Config, durable store.Store, status store.Reader, publisher *identity.Publisher) {
	routes.ServeBackup(archive.Header{Server: "zone", Zone: cfg.Zone}, func() ([]archive.File, error) {
		return archive.Collect(cfg.DataDir, archive.Folders("zone")...)
	})
	routes.Handle(api.RouteTrust, (&trustHandler{store: durable, home: publisher.Home, routes: routes}).serve)
	if cfg.Global != "" { // first: later previews use it
		routes.AddPreview(forecastSync(cfg.Zone))
	}
	shortfalls := &inspect.Shortfalls{Status: status, Now: cfg.Now}
	inspect.Register(routes, inspect.Config{Store: durable, Zone: cfg.Zone, SystemNamespace: cfg.SystemNamespace, Assigned: publisher.Authorities.Assigned, Shortfalls: shortfalls})
	routes.AddConditions((&identityConditions{store: durable, zone: cfg.Zone, authorities: publisher.Authorities, publisher: publisher}).of)
	names := &hostnames.Status{Store: durable, Home: publisher.Home}
	routes.AddStatus(names.Fields)
	routes.AddConditions(names.Conditions)
	inspect.RegisterPermissions(routes, durable, explain.Options{SystemNamespace: cfg.SystemNamespace, Zone: cfg.Zone, Shortfalls: shortfalls.Of})
}

// publishAll makes the authorities of all meshes available before the first proxy connects. It fails if an authority is
// damaged.
func publishAll(ctx context.Context, publisher *identity.Publisher, reader store.Reader) error {
	for mesh := range reader.Snapshot().List(store.Query{Type: resources.TypeMesh}) {
		if err := publisher.Ensure(ctx, mesh.Name); err != nil {
			return fmt.Errorf("identity of mesh %q: %w", mesh.Name, err)
		}
	}
	return nil
}

// announce writes the addresses to the log and to the ready file, and then watches the data folder until ctx ends.
func announce(ctx context.Context, cfg *Config, p *ports) error {
	addresses := map[string]string{
		"api": p.api.Addr().String(), "xds": p.xds.Addr().String(), "diagnostics": p.diagnostics.Addr().String(),
	}
	cfg.Log.Info("zone is ready", "zone", cfg.Zone, "api", addresses["api"], "xds", addresses["xds"],
		"diagnostics", addresses["diagnostics"], "global", cfg.Global)
	if err := server.WriteReadyFile(cfg.ReadyFile, addresses); err != nil {
		return err
	}
	return watchFolder(ctx, cfg)
}
