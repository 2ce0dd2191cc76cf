package global

import (
	"context"
	"errors"
	"time"

	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// ReplacedCA is the result of ReplaceCA.
type ReplacedCA struct {
	// SHA256 is that of the new CA, as zones pin it.
	SHA256 string
	// Aside is the folder with the old files, below that of the certificates; empty if there were none.
	Aside string
}

// errNotShared reports that the store has no CA to take.
var errNotShared = errors.New("no CA is shared in this store: only replicas with --store etcd take each other's")

// ReplaceCA replaces the CA that signs the certificates of a global, which must not run. Zones and clients that pinned
// the old one need the new pin. The files of the old CA are moved aside; the rest of the folder stays. Replicas share a
// CA in their store: it is replaced there first, and with take, the other replicas take it from there. If ReplaceCA is
// interrupted, the next start reports that the folder and the store have different CAs, and take mends that. Errors are
// those of the store, which is locked while a server with a file of its own runs, and of the files.
func ReplaceCA(ctx context.Context, c Config, take bool) (done *ReplacedCA, err error) {
	box, err := prepare(&c)
	if err != nil {
		return nil, err
	}
	defer c.folder.Close()
	durable, err := backend.Open(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, durable.Close()) }()
	shared := durable.SharedState() != nil
	switch keeper := secrets.NewKeeper(durable, box); {
	case take && (!shared || keeper.Version(serverCASecret) == 0):
		return nil, errNotShared
	case shared && !take:
		if err := replaceShared(ctx, keeper, c.Now()); err != nil {
			return nil, err
		}
	}
	aside, err := server.SetAsideCA(c.certificateDir(), c.Now())
	if err != nil {
		return nil, err
	}
	if shared {
		if err := share(ctx, &c, durable, box); err != nil {
			return nil, err
		}
	}
	certificate, err := server.LoadOrCreateCertificate(c.certificateDir(), nil, box, c.Now)
	if err != nil {
		return nil, err
	}
	return &ReplacedCA{SHA256: certificate.CASHA256, Aside: aside}, nil
}

// replaceShared replaces the CA in the store. It fails if another process does so at the same time.
func replaceShared(ctx context.Context, keeper *secrets.Keeper, now time.Time) error {
	_, version, err := keeper.Get(ctx, serverCASecret)
	if err != nil && !errors.Is(err, secrets.ErrNotFound) {
		return err
	}
	fresh, err := server.NewCA(now)
	if err != nil {
		return err
	}
	_, err = keeper.Put(ctx, serverCASecret, fresh, version)
	return err
}
