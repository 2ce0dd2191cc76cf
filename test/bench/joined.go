package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/credentials"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/zone"
)

// join makes zones join a global as real ones do, and returns what they prove themselves by.
func join(ctx context.Context, c *cluster.Cluster, g *cluster.Server, dir string, n int) ([]credentials.TransportCredentials, error) {
	out := make([]credentials.TransportCredentials, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() (err error) {
			out[i], err = joinOne(ctx, c, g, filepath.Join(dir, "zones", zoneName(i)), zoneName(i))
			return err
		})
	}
	return out, group.Wait()
}

func joinOne(ctx context.Context, c *cluster.Cluster, g *cluster.Server, dir, name string) (credentials.TransportCredentials, error) {
	quiet := slog.New(slog.DiscardHandler)
	offer, err := c.JoinString(ctx, g, name)
	if err != nil {
		return nil, err
	}
	if _, err := zone.Join(ctx, zone.JoinConfig{Join: offer, DataDir: dir, Log: quiet}); err != nil {
		return nil, err
	}
	box, err := secrets.OpenBox(secrets.Config{Dir: dir, Log: quiet})
	if err != nil {
		return nil, err
	}
	holder, err := enrolment.OpenHolder(dir, box, time.Now)
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(holder.TLSConfig()), nil
}

func zoneName(i int) string { return fmt.Sprintf("bench-%d", i) }
