package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// Streams are the two open streams of a zone without a zone behind them: a test sends and reads on them freely.
type Streams struct {
	conn *grpc.ClientConn
	stop context.CancelFunc
	zone *Zone
	// Down is GlobalToZoneSync, Up is ZoneToGlobalSync. Messages are *[]byte.
	Down, Up grpc.ClientStream
}

// rawBytes passes messages through unchanged.
type rawBytes struct{}

func (rawBytes) Name() string { return "proto" }

func (rawBytes) Marshal(v any) (mem.BufferSlice, error) {
	raw, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("a %T is not bytes", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*raw)}, nil
}

func (rawBytes) Unmarshal(data mem.BufferSlice, v any) error {
	raw, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("a %T is not bytes", v)
	}
	*raw = data.Materialize()
	return nil
}

// OpenStreams connects as cfg.Name, over its own connection.
func OpenStreams(ctx context.Context, cfg ZoneConfig) (*Streams, error) {
	conn, err := grpc.NewClient(cfg.KDS,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: cfg.CA, MinVersion: tls.VersionTLS12})),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawBytes{})))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(metadata.AppendToOutgoingContext(ctx, "client-id", cfg.Name, "kds-version", "v3",
		"features", "hash-suffix"))
	s := &Streams{conn: conn, stop: stop, zone: &Zone{cfg: cfg}}
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	if s.Down, err = conn.NewStream(ctx, desc, service+"GlobalToZoneSync"); err == nil {
		s.Up, err = conn.NewStream(ctx, desc, service+"ZoneToGlobalSync")
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Subscribe sends the first request of a type.
func (s *Streams) Subscribe(t string) error {
	node, err := s.zone.node()
	if err != nil {
		return err
	}
	return s.Request(&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: t, ResourceNamesSubscribe: []string{"*"}})
}

// Request sends on Down.
func (s *Streams) Request(r *discovery.DeltaDiscoveryRequest) error { return sendMessage(s.Down, r) }

// Respond sends on Up.
func (s *Streams) Respond(r *discovery.DeltaDiscoveryResponse) error { return sendMessage(s.Up, r) }

func sendMessage(stream grpc.ClientStream, m proto.Message) error {
	raw, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	return stream.SendMsg(&raw)
}

// Receive reads from Down.
func (s *Streams) Receive() (*discovery.DeltaDiscoveryResponse, error) {
	var raw []byte
	if err := s.Down.RecvMsg(&raw); err != nil {
		return nil, err
	}
	r := &discovery.DeltaDiscoveryResponse{}
	return r, proto.Unmarshal(raw, r)
}

// Close ends both streams at once, without notice.
func (s *Streams) Close() error {
	s.stop()
	return s.conn.Close()
}
