package leader

import (
	"context"

	"github.com/causeway-mesh/causeway/resources/store"
)

// While waits until this replica leads, as Lead does, and calls run with a context that ends with the lead. run returns
// the store that it opened, if it did. The error is ErrLost if the lead was lost.
func While(ctx context.Context, c Config, run func(context.Context, *Term) (store.Reader, error)) error {
	t, err := Lead(ctx, c)
	if t == nil || err != nil {
		return err
	}
	leading, cancel := t.Context(ctx)
	defer cancel()
	from, err := run(leading, t)
	err = t.Err(err)
	t.Close(ctx, from)
	return err
}
