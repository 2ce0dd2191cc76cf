package leader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/bolt"
)

// kept is what the Secrets hold.
type kept struct {
	core     *content
	version  string
	log      *content
	shards   []*content
	holdings []byte
}

// fill makes the data folder what the Secrets say.
func (t *Term) fill(ctx context.Context, k *kept) error {
	dir, file := t.cfg.DataDir, t.cfg.StoreFile
	if k == nil {
		_, err := os.Lstat(file)
		t.fresh = errors.Is(err, os.ErrNotExist)
		return nil
	}
	t.versions[coreSuffix] = k.version
	t.complete, t.files = k.core.Complete, k.core.Files
	if k.core.Complete {
		var err error
		if k.log, err = t.readLog(ctx); err != nil {
			return err
		}
		if err := t.readParts(ctx, k); err != nil {
			return err
		}
	}
	if err := clearFolder(dir); err != nil {
		return err
	}
	if err := writeFiles(dir, k.core.Files); err != nil {
		return err
	}
	if !k.core.Complete {
		t.fresh = true
		return nil
	}
	if len(k.holdings) > 0 {
		if err := os.WriteFile(filepath.Join(dir, holdingsFile), k.holdings, 0o600); err != nil {
			return err
		}
	}
	return t.fillStore(k)
}

// fillStore writes the store's file: the shards, with what the log has since.
func (t *Term) fillStore(k *kept) error {
	t.revision = k.log.Revision
	entries, at := map[resources.Key]entry{}, make([]uint64, storeShards)
	for i, c := range k.shards {
		at[i], t.revision = c.Revision, max(t.revision, c.Revision)
		for _, e := range c.Entries {
			key, err := store.DecodeKey(e.Key)
			if err != nil {
				return fmt.Errorf("secret %s: %w", t.vault.name(storeSuffix(i)), err)
			}
			entries[key] = e
		}
	}
	for _, e := range k.log.Entries {
		key, err := store.DecodeKey(e.Key)
		if err != nil {
			return fmt.Errorf("secret %s: %w", t.vault.name(logSuffix), err)
		}
		switch {
		case e.Revision <= at[shardOf(key)]:
		case len(e.Value) == 0:
			delete(entries, key)
		default:
			entries[key] = e
		}
	}
	rs := make([]*resources.Resource, 0, len(entries))
	for _, e := range entries {
		r, err := store.DecodeEntry(e.Key, e.Value)
		if err != nil {
			return fmt.Errorf("a Secret that the replicas share: %w", err)
		}
		rs = append(rs, r)
	}
	return bolt.Replace(t.cfg.StoreFile, t.revision, rs)
}

// readLog reads the log, and writes it again under this lead, so that an earlier leader cannot write it any more.
func (t *Term) readLog(ctx context.Context) (*content, error) {
	for {
		raw, version, err := t.vault.get(ctx, logSuffix)
		if err != nil {
			return nil, fmt.Errorf("%w: put it back from a backup of the cluster", err)
		}
		c, err := unpack(raw)
		if err != nil {
			return nil, fmt.Errorf("secret %s: %w", t.vault.name(logSuffix), err)
		}
		t.number = max(t.number, c.Term+1)
		c.Term = t.number
		if raw, err = c.pack(); err != nil {
			return nil, err
		}
		version, err = t.vault.put(ctx, logSuffix, raw, version)
		if isConflict(err) {
			continue
		}
		t.versions[logSuffix] = version
		return c, err
	}
}

// readParts reads the other Secrets.
func (t *Term) readParts(ctx context.Context, k *kept) error {
	k.shards = make([]*content, storeShards)
	holdings, versions := make([][]byte, holdingsParts), make([]string, storeShards+holdingsParts)
	group, ctx := errgroup.WithContext(ctx)
	for i := range storeShards {
		group.Go(func() error {
			raw, version, err := t.vault.get(ctx, storeSuffix(i))
			if err != nil {
				return fmt.Errorf("%w: put it back from a backup of the cluster", err)
			}
			versions[i] = version
			if k.shards[i], err = unpack(raw); err != nil {
				return fmt.Errorf("secret %s: %w", t.vault.name(storeSuffix(i)), err)
			}
			return nil
		})
	}
	for i := range holdingsParts {
		group.Go(func() error {
			raw, version, err := t.vault.get(ctx, holdingsSuffix(i))
			if errors.Is(err, errGone) {
				return nil // its proxies get new identities
			}
			if err != nil {
				return err
			}
			holdings[i], versions[storeShards+i] = raw[min(1, len(raw)):], version
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, version := range versions {
		suffix := storeSuffix(i)
		if i >= storeShards {
			suffix = holdingsSuffix(i - storeShards)
			k.holdings = append(k.holdings, holdings[i-storeShards]...)
		}
		t.versions[suffix] = version
	}
	return nil
}
