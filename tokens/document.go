package tokens

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/causeway-mesh/causeway/secrets"
)

// maxAttempts bounds how often an edit retries because another replica was faster.
const maxAttempts = 16

// document is one secret in decoded form. It is read again only if the secret's version has changed.
type document[T any] struct {
	keeper *secrets.Keeper
	name   string
	decode func([]byte) (T, error)
	// empty returns the value to use if there is no secret.
	empty func() T

	mu      sync.Mutex
	read    bool   // guarded by mu
	version uint64 // guarded by mu
	value   T      // guarded by mu; shared with readers and never changed
	err     error  // guarded by mu
}

// get returns the current value in the store. A value that cannot be read is an error every time: it fails closed.
func (d *document[T]) get(ctx context.Context) (T, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.read || d.version != d.keeper.Version(d.name) {
		d.value, d.version, d.err = d.fresh(ctx)
		d.read = true
	}
	return d.value, d.err
}

// fresh returns a new value that the caller owns.
func (d *document[T]) fresh(ctx context.Context) (T, uint64, error) {
	plain, version, err := d.keeper.Get(ctx, d.name)
	if errors.Is(err, secrets.ErrNotFound) {
		return d.empty(), 0, nil
	}
	if err != nil {
		var none T
		return none, d.keeper.Version(d.name), err
	}
	value, err := d.decode(plain)
	if err != nil {
		err = fmt.Errorf("secret %s: %w", d.name, err)
	}
	return value, version, err
}

// edit changes the value by compare-and-swap. It may call change several times, each time with a new value. It returns
// an error of change only if the value is the newest on all replicas.
func (d *document[T]) edit(ctx context.Context, change func(T) error) error {
	for attempt := 0; ; attempt++ {
		value, version, err := d.fresh(ctx)
		if err != nil {
			return err
		}
		if refusal := change(value); refusal != nil {
			err := d.keeper.Confirm(ctx, d.name, version)
			if errors.Is(err, secrets.ErrChanged) && attempt < maxAttempts {
				continue
			}
			return cmp.Or(err, refusal)
		}
		plain, err := json.Marshal(value)
		if err != nil {
			return err
		}
		_, err = d.keeper.Put(ctx, d.name, plain, version)
		if !errors.Is(err, secrets.ErrChanged) || attempt == maxAttempts {
			return err
		}
	}
}
