package global

import (
	"context"
	"errors"

	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// ReplacedCA says what ReplaceCA did.
type ReplacedCA struct {
	// SHA256 is that of the CA from now on, as zones pin it.
	SHA256 string
	// Aside is the folder that the old files were moved to, below that of the certificates; empty where there were none.
	Aside string
}

// errNotShared: there is no CA to take.
var errNotShared = errors.New("no CA is shared in this store: only replicas with --store etcd take each other's")

// ReplaceCA replaces the CA that signs the certificates of a global, which must not run. Zones and clients that pinned the old one have to be
// told. The files of the old CA are moved aside, nothing else of the folder is. Replicas share a CA in their store: it is replaced there first, and with
// take, the others take it from there. When it is broken off, the next start says that the folder has another CA than the store, and
// take makes good. Errors are those of the store, which is in use while a server with a file of its own runs, and of the files.
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
	shared := durable.Board() != nil
	switch keeper := secrets.NewKeeper(durable, box); {
	case take && (!shared || keeper.Version(serverCASecret) == 0):
		return nil, errNotShared
	case shared && !take:
		if err := replaceShared(ctx, keeper); err != nil {
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
	certificate, err := server.LoadOrCreateCertificate(c.certificateDir(), nil, box)
	if err != nil {
		return nil, err
	}
	return &ReplacedCA{SHA256: certificate.CASHA256, Aside: aside}, nil
}

// replaceShared puts a new CA into the store, in the place of the one that is there. It fails when another process does so at once.
func replaceShared(ctx context.Context, keeper *secrets.Keeper) error {
	_, version, err := keeper.Get(ctx, serverCASecret)
	if err != nil && !errors.Is(err, secrets.ErrNotFound) {
		return err
	}
	fresh, err := server.NewCA()
	if err != nil {
		return err
	}
	_, err = keeper.Put(ctx, serverCASecret, fresh, version)
	return err
}
