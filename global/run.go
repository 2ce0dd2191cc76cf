package global

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/place"
	"github.com/causeway-mesh/causeway/questions"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/tokens"
	"github.com/causeway-mesh/causeway/zone/accesslog"
)

// Run serves zones and the HTTP API until ctx ends, then drains and returns nil. It returns startup errors before it
// serves anything but startup progress.
func Run(ctx context.Context, c Config) error {
	if err := c.fill(); err != nil {
		return err
	}
	return whileLeading(ctx, &c)
}

// runOn runs the global on its data folder. It returns the store, if it was opened, which is closed then.
func runOn(ctx context.Context, c *Config) (store.Reader, error) {
	box, err := prepare(c)
	if err != nil {
		return nil, err
	}
	defer c.folder.Close()
	sockets, err := listenFirst(c)
	if err != nil {
		return nil, err
	}
	defer sockets.close()
	diagnostics := server.NewDiagnostics()
	diagnostics.Guard(c.Panics)
	diagnostics.SetStarting(errors.New("the store is not open yet"))
	var from store.Reader
	err = server.Together(ctx,
		func(ctx context.Context) error { return sockets.serveDiagnostics(ctx, diagnostics) },
		func(ctx context.Context) error {
			return run(ctx, c, box, sockets, diagnostics, func(s store.Reader) { from = s })
		})
	return from, err
}

// opened holds what the start opens first.
type opened struct {
	store *backend.Store
	// fields decrypts the secrets in the store.
	fields *secrets.Fields
	guard  *access.Guard
	gate   *gate
}

func (o *opened) close() error { return errors.Join(o.store.Close(), o.guard.Audit().Close()) }

// run opens the store and serves it. It tells which one.
func run(ctx context.Context, c *Config, box *secrets.Box, sockets *sockets, diagnostics *server.Diagnostics,
	tell func(store.Reader)) (err error) {
	c.Store.Registerer = diagnostics.Registry
	var o *opened
	err = c.Store.Insist(ctx, diagnostics.SetStarting, func() error {
		o, err = open(ctx, c, box)
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil // told to stop before it started
		}
		return err
	}
	tell(o.store)
	defer func() { err = errors.Join(err, o.close()) }()
	diagnostics.AddCheck("data folder", c.folder.Check)
	diagnostics.AddCheck("store", o.store.Healthy)
	diagnostics.AddCheck("audit log", func() error { return o.guard.Audit().Ready(ctx) })
	diagnostics.AddResources(c.DataDir)
	return serve(ctx, c, box, o, sockets, diagnostics)
}

// serve wires the parts, in order of dependency, and runs them until ctx ends.
func serve(ctx context.Context, c *Config, box *secrets.Box, o *opened, sockets *sockets,
	diagnostics *server.Diagnostics) error {
	durable, guard, gate, instance := o.store, o.guard, o.gate, server.Instance()
	if err := sockets.listen(c); err != nil {
		return err
	}
	diagnostics.AddExpiries(gate.expiries)
	diagnostics.AddLog(c.Log)
	diagnostics.AddListeners(c.Log, sockets.api, sockets.kds, sockets.diagnostics)
	certificate, err := sockets.open(ctx, c, box, guard, diagnostics)
	if err != nil {
		return err
	}
	port, err := newZonePort(c, sockets.kds, certificate)
	if err != nil {
		return err
	}

	// Insights are rewritten often. A long changelog would keep all old ones.
	status := store.NewMemoryWith(store.ViewConfig{WindowCommits: 64, WindowChanges: 1024, Now: c.Now})
	known := kds.NewVersionFiles(c.knownDir(), c.Log, durable, status)
	sync := newSync(c, o, status, known, instance)
	insights := newInsights(status, instance, sync.Has, c.Log)
	insights.refused = sync.DigestRefusals
	replicas := newReplicas(c, replicaParts{durable: durable, status: status, sync: sync, clones: gate.clones,
		instance: instance, addresses: port.addresses, term: c.term})
	sync.AddObservers(insights, replicas, kds.NewMetrics(diagnostics.Registry), gate.clones, gate.admission)
	zones := &zones{store: durable, status: status, insights: insights, replicas: replicas, sync: sync, questions: questions.NewQueue(),
		clones: gate.clones, tombstone: gate.admission.writeTombstoneIfAdmitted, log: c.Log}
	collect(c, diagnostics, sync, gate.clones, zones)
	routes, spread := newRoutes(c, o, zones, diagnostics)
	grpcServer, err := gate.serve(port, routes, zones)
	if err != nil {
		return err
	}
	bridge, err := newBridge(c, durable, spread, box, diagnostics) // last: it listens
	if err != nil {
		return err
	}

	if err := c.term.Start(ctx, durable); err != nil {
		return err
	}
	c.folder.Need(append(server.CertificateFiles(certificateFolder), backend.File)...)
	return server.Together(ctx, func(ctx context.Context) error { return c.term.Run(ctx, durable) }, guard.Issuer().Run, insights.run, zones.run, replicas.run, known.Run, bridge.Run,
		func(ctx context.Context) error { return c.folder.Run(ctx, c.Log) },
		func(ctx context.Context) error { return certificate.Run(ctx, c.Log) },
		func(ctx context.Context) error { return gate.run(ctx, sync, replicas.leads) },
		func(ctx context.Context) error { return serveKDS(ctx, c, grpcServer, sync, sockets.kds) },
		func(ctx context.Context) error { return server.ServeHTTP(ctx, sockets.api, routes, c.Panics) },
		func(ctx context.Context) error { return ready(ctx, c, sockets, diagnostics) })
}

// newSync returns the global's side of KDS.
func newSync(c *Config, o *opened, status store.Store, known *kds.VersionFiles, instance string) *kds.Global {
	gate := o.gate
	config := kds.GlobalConfig{
		Store: o.store, Status: status, Validate: resources.ValidatePeer, SystemNamespace: c.SystemNamespace,
		MaxMessageSize: c.KDSMaxMessageSize, SendTimeout: c.KDSSendTimeout, FullSyncLimit: c.KDSFullSyncLimit,
		Limits: c.KDSZoneLimits, FullSyncs: server.CollectEagerly, HealthInterval: time.Minute, Versions: known, Log: c.Log,
		Authenticate: gate.admission.authenticate, Epoch: gate.lineage.Epoch(), StoreOf: gate.storeOf,
		Compare: gate.lineage.Compare, WordAt: gate.wordAt(), Self: kds.Peer{Instance: instance, Version: server.Version()}, Tracer: c.Tracer,
		Panics: c.Panics, Open: o.fields.Open, Now: c.Now,
	}
	if o.store.SharedState() != nil {
		config.Replica = instance
	}
	return kds.NewGlobal(config)
}

// collect registers the metrics that are computed when they are read.
func collect(c *Config, diagnostics *server.Diagnostics, sync *kds.Global, clones *clones, zones *zones) {
	for _, one := range []prometheus.Collector{tracker.StatusCollector{Statuses: sync.Statuses,
		Encoder: sync.Encoder()}, clones, zones} {
		diagnostics.Registry.MustRegister(c.Panics.Collector("metrics", one))
	}
	diagnostics.Detail.MustRegister(c.Panics.Collector("metrics", tracker.LagCollector{Statuses: sync.Statuses}))
}

// newRoutes returns the HTTP API with the routes that only a global serves, and the reporter of rollouts.
func newRoutes(c *Config, o *opened, zones *zones, diagnostics *server.Diagnostics) (*api.Server, *rollout) {
	durable, sync := o.store, zones.sync
	shown := &presence{zones.status, sync}
	away := func(zone string) *api.Unknown { return absent(sync, zone) }
	routes := api.New(api.Config{
		Store: durable, Status: shown, Absent: away, Refused: sync.CountRefusals, Outdated: zones.replicas.outdatedTexts,
		Home: c.home(), Guard: o.guard,
		Fields: o.fields, Log: c.Log, Registerer: diagnostics.Registry, Version: server.Version(), ClusterID: c.clusterID,
		InstanceID: zones.replicas.instance, Tracer: c.Tracer, Panics: c.Panics, Now: c.Now, Page: c.Page,
	})
	spread := &rollout{store: durable, status: shown, systemNamespace: c.SystemNamespace, sync: sync, replicas: zones.replicas}
	asked := &zoneQuestions{store: durable, sync: sync, questions: zones.questions}
	addInspect(routes, durable, shown, away, spread, asked, c)
	(&operator{store: durable, sync: sync, outdated: zones.replicas.outdated}).register(routes)
	routes.Handle(api.RouteReplicas, zones.replicas.serve)
	(&proxyQuestions{zones: asked, store: durable, routes: routes}).register()
	accesslog.Register(routes, accesslog.Config{Store: durable, Ask: asked.reported, Now: c.Now})
	spread.register(routes)
	routes.ServeBackup(archive.Header{Server: "global"},
		func() ([]archive.File, error) { return archive.Collect(c.DataDir, archive.Folders("global")...) })
	return routes, spread
}

// open opens what outlives a restart: the store, with a mesh in it, the audit log behind the guard of the HTTP API, and
// the secrets for admitting zones. If it fails, it leaves nothing open.
func open(ctx context.Context, c *Config, box *secrets.Box) (o *opened, err error) {
	fields := secrets.NewFields(box)
	stored := c.Store
	stored.Background, stored.Undecoded = kds.Bookkeeping, true
	durable, err := backend.OpenSealed(ctx, stored, fields)
	if err != nil {
		return nil, err
	}
	o = &opened{store: durable, fields: fields}
	defer func() {
		if err != nil {
			err = errors.Join(err, durable.Close())
		}
	}()
	if durable.SharedState() != nil {
		if err := share(ctx, c, durable, box); err != nil {
			return nil, err
		}
	}
	if err := api.EnsureDefaults(ctx, durable, c.home()); err != nil {
		return nil, err
	}
	if err := api.EnsureInitialPolicies(ctx, durable, c.home()); err != nil {
		return nil, err
	}
	issuer, err := tokens.Open(ctx, tokens.Config{Keeper: secrets.NewKeeper(durable, box), Now: c.Now, Log: c.Log})
	if err != nil {
		return nil, err
	}
	if o.guard, err = access.Open(ctx, c.Access, access.Parts{DataDir: c.DataDir, Store: durable, Issuer: issuer,
		Now: c.Now, Log: c.Log}); err != nil {
		return nil, err
	}
	if o.gate, err = openGate(ctx, c, durable, box, o.guard); err != nil {
		return nil, errors.Join(err, o.guard.Audit().Close())
	}
	return o, nil
}

// prepare creates the data directory and opens the box for its secrets.
func prepare(c *Config) (*secrets.Box, error) {
	if err := errors.Join(server.MakeDataDir(c.DataDir, c.Log), archive.Unfinished(c.DataDir)); err != nil {
		return nil, err
	}
	var err error
	if c.clusterID, err = server.ClusterID(c.clusterIDFile()); err != nil {
		return nil, err
	}
	box, err := secrets.OpenBox(secrets.Config{KeyFile: c.SecretsKeyFile, Passphrase: c.SecretsPassphrase,
		Dir: c.DataDir, Log: c.Log})
	if err != nil {
		return nil, err
	}
	return box, c.hold()
}

// hold makes the server notice when its data folder, or a file that a restart needs, is gone.
func (c *Config) hold() (err error) {
	c.folder, err = place.HoldData(c.DataDir, server.ClusterIDFile,
		secrets.KeptIn(c.SecretsKeyFile, c.SecretsPassphrase)...)
	if err == nil {
		c.Store.Held, c.Store.Keep = c.held, c.term.Keeper()
	}
	return err
}

// ready reports that every socket is served, in the ready file and to the service manager, until ctx ends.
func ready(ctx context.Context, c *Config, s *sockets, diagnostics *server.Diagnostics) error {
	diagnostics.SetStarting(nil)
	if c.ReadyFile != "" {
		if err := server.WriteReadyFile(c.ReadyFile, s.addresses()); err != nil {
			return fmt.Errorf("ready file: %w", err)
		}
	}
	c.Log.Info("global is ready", "api", s.api.Addr().String(), "kds", s.kds.Addr().String(), "diagnostics",
		s.diagnostics.Addr().String(), "version", server.Version())
	return diagnostics.Notify(ctx, s.diagnostics.Addr(), c.Log)
}
