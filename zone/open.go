package zone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/place"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/tokens"
	"github.com/causeway-mesh/causeway/zone/checkpoint"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// The contents of the zone's data directory.
const (
	identityDir = "identity" // one folder for each mesh's authority
	knownDir    = "known"    // known copies of the global; may be deleted, it only saves work after a restart
	tlsDir      = "tls"      // the serving certificate of ports off loopback
	// checkpointFile records what the zone issued to proxies, sealed. It may be deleted; it only spares proxies an
	// update after a restart.
	checkpointFile = "holdings.sealed"
)

// opened holds what a start opens first.
type opened struct {
	home  resources.Home
	store *backend.Store
	// status holds the state of proxies and of the link; it is not durable.
	status store.Store
	box    *secrets.Box
	// fields decrypts the secrets in resources. keeper holds the secrets that have names of their own.
	fields *secrets.Fields
	keeper *secrets.Keeper
	guard  *access.Guard
	// memberships holds the zone's credential, if it has joined.
	memberships *enrolment.Holder
	// instance identifies this run of the server.
	instance string
	// lastRead reads a policy that is written, once for the answer to its writer and for the proxies.
	lastRead matching.LastRead
}

func (o *opened) close() error { return errors.Join(o.store.Close(), o.guard.Audit().Close()) }

// open opens the durable parts: the store, with a mesh in it, and the audit log behind the guard of the HTTP API. If it
// fails, it closes everything again.
func open(ctx context.Context, cfg *Config, box *secrets.Box) (o *opened, err error) {
	fields := secrets.NewFields(box)
	durable, err := backend.OpenSealed(ctx, cfg.Store, fields)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, durable.Close())
		}
	}()
	home := resources.Home{Zone: cfg.Zone, Alone: cfg.Global == "", SystemNamespace: cfg.SystemNamespace}
	if err := api.EnsureDefaults(ctx, durable, home); err != nil {
		return nil, err
	}
	if err := api.EnsureInitialPolicies(ctx, durable, home); err != nil {
		return nil, err
	}
	keeper := secrets.NewKeeper(durable, box)
	issuer, err := tokens.Open(ctx, tokens.Config{Keeper: keeper, Now: cfg.Now, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	guard, err := access.Open(ctx, cfg.Access, access.Parts{DataDir: cfg.DataDir, Store: durable, Issuer: issuer,
		Now: cfg.Now, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	// Insights are written continually. A long changelog would keep all of their past versions.
	status := store.NewMemoryWith(store.ViewConfig{WindowCommits: 64, WindowChanges: 1024, Now: cfg.Now})
	return &opened{home: home, store: durable, status: status, box: box, fields: fields, keeper: keeper, guard: guard,
		instance: uuid.NewString()}, nil
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
	box, err := secrets.OpenBox(secrets.Config{KeyFile: cfg.SecretsKeyFile, Passphrase: cfg.SecretsPassphrase,
		Dir: cfg.DataDir, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	return box, cfg.hold()
}

// hold makes the server notice if its data folder, or a file in it that a restart needs, disappears.
func (c *Config) hold() (err error) {
	c.folder, err = place.HoldData(c.DataDir, server.ClusterIDFile,
		secrets.KeptIn(c.SecretsKeyFile, c.SecretsPassphrase)...)
	if err == nil {
		c.Store.Held, c.Store.Keep = c.held, c.term.Keeper()
	}
	return err
}

// openCheckpoint reads what the zone issued to proxies before.
func openCheckpoint(cfg *Config, box *secrets.Box, diagnostics *server.Diagnostics) *checkpoint.Cache {
	return checkpoint.Open(checkpoint.Config{
		Path: filepath.Join(cfg.DataDir, checkpointFile), Box: box, Now: cfg.Now, Log: cfg.Log,
		Registerer: diagnostics.Registry,
	})
}

// newVersionFiles returns the versions of the global's resources that the zone had before.
func newVersionFiles(cfg *Config, o *opened) *kds.VersionFiles {
	return kds.NewVersionFiles(filepath.Join(cfg.DataDir, knownDir), cfg.Log, o.store)
}

// newPublisher makes the authorities of all meshes available before the first proxy connects. It fails if an authority
// is damaged.
func newPublisher(ctx context.Context, cfg *Config, o *opened) (*identity.Publisher, error) {
	authorities := identity.NewAuthorities(identity.Config{Keeper: o.keeper, Store: o.store,
		Dir: filepath.Join(cfg.DataDir, identityDir), Zone: cfg.Zone, Now: cfg.Now})
	publisher := &identity.Publisher{Store: o.store, Home: o.home, Authorities: authorities, Log: cfg.Log}
	for mesh := range o.store.Snapshot().List(store.Query{Type: resources.TypeMesh}) {
		if err := publisher.Ensure(ctx, mesh.Name); err != nil {
			return nil, fmt.Errorf("identity of mesh %q: %w", mesh.Name, err)
		}
	}
	return publisher, nil
}
