package kds

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// heldStream is a stream that a zone keeps open beside those of its session.
type heldStream struct {
	zone       string
	connection *connection
	pass       Pass // nil without Authenticate
	cancel     context.CancelCauseFunc
}

// hold gives a stream one of its zone's slots until it is released. If no slot is free, it evicts the streams of older
// connections: a zone that reconnects does not wait for what its previous connection left. A stream of a connection
// older than the zone's session gets no slot.
func (g *Global) hold(one *heldStream) (release func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	zone := one.zone
	if current := g.sessions[zone]; current != nil && current.connection.number > one.connection.number {
		return nil, fmt.Errorf("zone %s: %w", zone, ErrFenced)
	}
	if len(g.held[zone]) >= maxHeldStreams {
		g.freeLocked(zone, ErrFenced, func(h *heldStream) bool { return h.connection.number < one.connection.number })
	}
	if len(g.held[zone]) >= maxHeldStreams {
		if data := g.zones[zone]; data != nil {
			data.over.Meet(tracker.LimitStreams, "", maxHeldStreams, 1)
		}
		return nil, fmt.Errorf("zone %s: %w: it holds %d already", zone, ErrTooManyStreams, maxHeldStreams)
	}
	if g.held[zone] == nil {
		g.held[zone] = map[*heldStream]struct{}{}
	}
	g.held[zone][one] = struct{}{}
	if one.pass != nil {
		g.rechecks.held = append(g.rechecks.held, one)
	}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.freeLocked(zone, context.Canceled, func(h *heldStream) bool { return h == one })
	}, nil
}

// freeLocked ends the streams of a zone that match which, and frees their slots at once, before they have ended. The
// caller holds g.mu.
func (g *Global) freeLocked(zone string, why error, which func(*heldStream) bool) {
	for h := range g.held[zone] {
		if which(h) {
			delete(g.held[zone], h)
			h.cancel(why)
		}
	}
	if len(g.held[zone]) > 0 {
		return
	}
	delete(g.held, zone)
	if data := g.zones[zone]; data != nil {
		data.over.End(tracker.LimitStreams, "")
	}
}

func allHeld(*heldStream) bool { return true }

// StreamXDSConfigs implements kdspb.GlobalKDSServiceServer. The global queries no proxies over it.
func (g *Global) StreamXDSConfigs(stream grpc.BidiStreamingServer[meshpb.XDSConfigResponse,
	meshpb.XDSConfigRequest]) error {
	return g.holdOpen(stream)
}

// StreamStats implements kdspb.GlobalKDSServiceServer, as StreamXDSConfigs.
func (g *Global) StreamStats(stream grpc.BidiStreamingServer[meshpb.StatsResponse, meshpb.StatsRequest]) error {
	return g.holdOpen(stream)
}

// StreamClusters implements kdspb.GlobalKDSServiceServer, as StreamXDSConfigs.
func (g *Global) StreamClusters(stream grpc.BidiStreamingServer[meshpb.ClustersResponse,
	meshpb.ClustersRequest]) error {
	return g.holdOpen(stream)
}

// holdOpen keeps a stream open and sends nothing: Kuma zones open these streams and expect them to stay open.
func (g *Global) holdOpen(stream grpc.ServerStream) error {
	zone, _, pass, err := g.identify(stream.Context())
	if err != nil {
		return ToStatus(err)
	}
	connection := connectionOf(stream.Context())
	if connection == nil {
		return ToStatus(errNoOptions)
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	release, err := g.hold(&heldStream{zone: zone, connection: connection, pass: pass, cancel: cancel})
	if err != nil {
		return ToStatus(err)
	}
	defer release()
	select {
	case <-ctx.Done():
		if stream.Context().Err() != nil {
			return nil
		}
		return ToStatus(context.Cause(ctx))
	case <-g.ctx.Done():
		return ToStatus(ErrDraining)
	}
}
