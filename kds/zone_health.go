package kds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/lineage"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// shortestHealth and longestHealth bound the interval that a global sets.
const (
	shortestHealth = 10 * time.Millisecond
	longestHealth  = time.Hour
)

// health is a global's answer to HealthCheck. It is zero for one without the method.
type health struct {
	interval time.Duration
	features exchange.Features
	epoch    string
	// point is the position of the store, empty from a global that does not send it. forgotten is set if the store is
	// not the one that was seen.
	point     lineage.Seen
	forgotten bool
	// seen is how much the global has seen of the zone's store, in its words; empty from a global that does not say it.
	seen []string
}

// checkHealth calls HealthCheck and reads the global's features and store from its header. A global without the method
// is plain. The first call of a session connects. It waits while bytes arrive, at most for limit.
func (z *Zone) checkHealth(ctx context.Context, conn *grpc.ClientConn, limit time.Duration) (health, error) {
	ctx, cancel := z.heard.within(ctx, z.config.SendTimeout, limit)
	defer cancel()
	seen, err := z.met.seen(ctx)
	if err != nil {
		return health{}, err
	}
	if seen.Word != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, metadataSeen, seen.String())
	}
	var header metadata.MD
	resp, err := kdspb.NewGlobalKDSServiceClient(conn).HealthCheck(ctx, &meshpb.ZoneHealthCheckRequest{},
		grpc.Header(&header))
	if status.Code(err) == codes.Unimplemented {
		return health{}, nil
	}
	if err != nil {
		return health{}, fmt.Errorf("health check: %w", err)
	}
	interval := resp.GetInterval().AsDuration()
	if interval <= 0 {
		interval = z.config.HealthInterval
	} else {
		interval = min(max(interval, shortestHealth), longestHealth)
	}
	return health{
		interval: interval, features: exchange.ParseFeatures(header.Get(metadataFeatures)),
		epoch: epochOf(header),
		point: parseSeen(header.Get(metadataPoint)), forgotten: len(header.Get(metadataForgotten)) > 0,
		seen: header.Get(metadataSeen),
	}, nil
}

// keepHealthy calls HealthCheck at the interval; zero means that the global has no such method.
func (z *Zone) keepHealthy(ctx context.Context, conn *grpc.ClientConn, interval time.Duration) error {
	for interval > 0 {
		timer := time.NewTimer(interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
		next, err := z.checkHealth(ctx, conn, longestBacklog) // the answer queues behind what the global sends
		if err != nil {
			return err
		}
		interval = next.interval
		z.met.setPoint(next.point)
	}
	<-ctx.Done()
	return errors.Join(context.Cause(ctx))
}
