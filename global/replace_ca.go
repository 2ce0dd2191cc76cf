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
	// SHA256 is the hash of the new CA that zones pin.
	SHA256 string
	// Aside is the folder with the old files, inside the certificate folder; empty if there were none.
	Aside string
}

// errNotShared reports that the store has no CA to adopt.
var errNotShared = errors.New("the store has no shared CA: only replicas with --store etcd share one")

// ReplaceCA replaces the CA that signs the certificates of a stopped global. Zones and clients that pinned the old one
// need the new pin. ReplaceCA moves the files of the old CA aside; the rest of the folder stays. Replicas share a CA in
// their store: it is replaced there first, and the other replicas adopt it with take. If ReplaceCA is interrupted, the
// next start reports that the folder and the store have different CAs, and take repairs that. Errors come from the
// files and the store, which is locked while a server with a file of its own runs.
func ReplaceCA(ctx context.Context, c Config, take bool) (done *ReplacedCA, err error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
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

// replaceShared replaces the CA in the store. It fails if another process replaces it at the same time.
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
