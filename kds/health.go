package kds

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/causeway-mesh/causeway/lineage"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// HealthCheck implements kdspb.GlobalKDSServiceServer. Its header announces our features: a zone reads them before it
// opens streams.
func (g *Global) HealthCheck(ctx context.Context, _ *meshpb.ZoneHealthCheckRequest) (*meshpb.ZoneHealthCheckResponse,
	error) {
	zone, md, _, err := g.identify(ctx)
	if err != nil {
		return nil, ToStatus(err)
	}
	header := metadata.MD{}
	header.Append(metadataFeatures, g.config.Self.Features.Names()...)
	if g.config.Epoch != "" {
		header.Append(metadataEpoch, g.config.Epoch)
	}
	if err := g.compare(ctx, parseSeen(md.Get(metadataSeen)), header); err != nil {
		return nil, ToStatus(err)
	}
	if g.config.StoreOf != nil {
		seen, err := g.config.StoreOf(zone).Seen(ctx)
		if err != nil {
			return nil, ToStatus(err)
		}
		header.Append(metadataSeen, seen.String())
	}
	if err := grpc.SetHeader(ctx, header); err != nil {
		return nil, err
	}
	g.config.Observer.Observe(Event{Kind: HealthChecked, Time: g.config.Now(), Zone: zone,
		Peer: &Peer{AuthTokenProvided: len(md.Get(metadataAuthorization)) > 0}})
	return &meshpb.ZoneHealthCheckResponse{Interval: durationpb.New(g.config.HealthInterval)}, nil
}

// compare adds the store's position to the header, and whether the store lacks what the zone has seen of it.
func (g *Global) compare(ctx context.Context, seen lineage.Seen, header metadata.MD) error {
	if g.config.Compare == nil {
		return nil
	}
	now, continues, err := g.config.Compare(ctx, seen)
	if err != nil {
		return err
	}
	header.Append(metadataPoint, now.String())
	if !continues {
		header.Append(metadataForgotten, seen.String())
	}
	return nil
}
