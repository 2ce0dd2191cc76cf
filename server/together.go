package server

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Together runs all parts of a server until ctx ends. The first error of a part ends the others, and is returned.
func Together(ctx context.Context, parts ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range parts {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}
