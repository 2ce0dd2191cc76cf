package global

import (
	"context"
	"errors"
	"fmt"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// Secrets that replicas share: one name, and the CA that zones pin.
const (
	clusterSecret  = "cluster-id"
	serverCASecret = "server-ca"
)

// share makes this server a replica of those with the same store. It adopts their name and CA, or stores its own if it
// is the first. It fails if its key cannot open what they have sealed.
func share(ctx context.Context, c *Config, durable store.Store, box *secrets.Box) error {
	keeper := secrets.NewKeeper(durable, box)
	err := opensOne(ctx, keeper) // first of all: a secret sealed with another key would lock the right one out for good
	var id []byte
	if err == nil {
		id, err = keepOne(ctx, keeper, clusterSecret, func() ([]byte, error) { return []byte(c.clusterID), nil })
	}
	if errors.Is(err, secrets.ErrWrongKey) {
		return fmt.Errorf("%w: the replicas of a global seal with one key; give this one the key of the others with --secrets-key-file (the first one made %s/secrets.key by itself), or all of them the same passphrase in %s",
			err, c.DataDir, secrets.PassphraseEnv)
	}
	if err != nil {
		return err
	}
	c.clusterID = string(id)
	ca, err := keepOne(ctx, keeper, serverCASecret,
		func() ([]byte, error) { return server.ExportCA(c.certificateDir(), box, c.Now()) })
	if err != nil {
		return err
	}
	return server.ImportCA(c.certificateDir(), ca, box)
}

// opensOne tries the key on an existing secret. All secrets of a store are sealed with one key.
func opensOne(ctx context.Context, keeper *secrets.Keeper) error {
	names := keeper.Names()
	if len(names) == 0 {
		return nil
	}
	if _, _, err := keeper.Get(ctx, names[0]); !errors.Is(err, secrets.ErrNotFound) {
		return err
	}
	return nil
}

// keepOne returns the secret, and creates it if there is none. If several servers create it at once, one wins.
func keepOne(ctx context.Context, keeper *secrets.Keeper, name string, fresh func() ([]byte, error)) ([]byte, error) {
	for {
		kept, _, err := keeper.Get(ctx, name)
		if !errors.Is(err, secrets.ErrNotFound) {
			return kept, err
		}
		made, err := fresh()
		if err != nil {
			return nil, err
		}
		if _, err := keeper.Put(ctx, name, made, 0); !errors.Is(err, secrets.ErrChanged) {
			return made, err
		}
	}
}
