package secrets

import (
	"context"
	"errors"
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Keeper keeps named secrets in a store, sealed. Every replica that shares the store and the key can read them, and a
// backup of the store contains them. Each secret is sealed for the purpose of its name, so no secret can stand in for
// another. Safe for concurrent use.
type Keeper struct {
	store store.Store
	box   *Box
}

// NewKeeper returns the keeper of the secrets in s.
func NewKeeper(s store.Store, b *Box) *Keeper { return &Keeper{store: s, box: b} }

func keyOf(name string) resources.Key { return resources.Key{Type: resources.TypeSecret, Name: name} }

// Get returns a secret and its version, which is never zero. Errors: ErrNotFound, ErrWrongKey, ErrDamaged.
func (k *Keeper) Get(_ context.Context, name string) (plain []byte, version uint64, err error) {
	found := k.store.Snapshot().Get(keyOf(name))
	if found == nil {
		return nil, 0, fmt.Errorf("secret %s: %w", name, ErrNotFound)
	}
	spec, err := resources.SpecAs[resources.Secret](found)
	if err != nil {
		return nil, 0, fmt.Errorf("secret %s: %w", name, ErrDamaged)
	}
	plain, err = k.box.Open(spec.Sealed, name)
	if err != nil {
		return nil, 0, fmt.Errorf("secret %w", err)
	}
	return plain, found.Revision, nil
}

// Put stores a secret and returns its new version. It replaces only the given version; zero means that there is none
// yet. Otherwise it fails with ErrChanged. Other errors are those of the store.
func (k *Keeper) Put(ctx context.Context, name string, plain []byte, version uint64) (uint64, error) {
	op, err := k.Replacing(name, plain)
	if err != nil {
		return 0, err
	}
	op.If = at(version)
	commit, err := k.apply(ctx, name, op)
	if err != nil {
		return 0, err
	}
	return commit.Revision, nil
}

// Replacing returns the operation that stores a secret, whatever its version, for a batch with other operations.
func (k *Keeper) Replacing(name string, plain []byte) (store.Op, error) {
	sealed, err := k.box.Seal(plain, name)
	if err != nil {
		return store.Op{}, err
	}
	spec, err := resources.NewSpecOf(resources.TypeSecret, &resources.Secret{Sealed: sealed})
	if err != nil {
		return store.Op{}, err
	}
	return store.Op{Put: &resources.Resource{Key: keyOf(name), Spec: spec}}, nil
}

// Delete removes a version of a secret. It fails with ErrChanged if the secret is gone or at another version.
func (k *Keeper) Delete(ctx context.Context, name string, version uint64) error {
	_, err := k.apply(ctx, name, store.Op{Delete: keyOf(name), If: store.IfRevision(version)})
	return err
}

// Confirm returns nil if the version of a secret, zero if there is none, is still the newest on all servers that share
// the store, or ErrChanged otherwise. A conclusion from a secret without a write, such as a refusal, is certain only
// then. Other errors are those of the store.
func (k *Keeper) Confirm(ctx context.Context, name string, version uint64) error {
	_, err := k.store.Apply(ctx, store.Batch{Check: func(now store.Snapshot) error {
		if versionIn(now, name) != version {
			return fmt.Errorf("secret %s: %w", name, ErrChanged)
		}
		return nil
	}})
	return err
}

func (k *Keeper) apply(ctx context.Context, name string, op store.Op) (*store.Commit, error) {
	commit, err := k.store.Apply(ctx, store.Batch{Ops: []store.Op{op}})
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("secret %s: %w", name, ErrChanged)
	}
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", name, err)
	}
	return commit, nil
}

func at(version uint64) store.Condition {
	if version == 0 {
		return store.IfAbsent()
	}
	return store.IfRevision(version)
}

// Names lists the secrets in alphabetical order.
func (k *Keeper) Names() []string {
	var out []string
	for r := range k.store.Snapshot().List(store.Query{Type: resources.TypeSecret}) {
		out = append(out, r.Name)
	}
	return out
}

// Version returns the current version of a secret, or zero if there is none. It decrypts nothing and is cheap.
func (k *Keeper) Version(name string) uint64 {
	return versionIn(k.store.Snapshot(), name)
}

func versionIn(s store.Snapshot, name string) uint64 {
	if found := s.Get(keyOf(name)); found != nil {
		return found.Revision
	}
	return 0
}

// Changed returns a channel that the next commit to the store closes, of a secret or anything else. Get the channel,
// compare versions, then wait.
func (k *Keeper) Changed() <-chan struct{} {
	_, next := k.store.Changed()
	return next
}
