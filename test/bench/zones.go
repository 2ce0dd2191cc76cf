package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// countedType is the type of the policies that bench writes.
const countedType = "MeshTrafficPermission"

// zones are simulated zones, each with its own connection and one stream. Those that take no frames are like another
// vendor's.
type zones struct {
	*crowd
	frames bool
	// offering means that zones send what they have, too: see offersOf. Such a zone comes back however often its session
	// ends, and may leave.
	offering bool
	ends     []atomic.Pointer[context.CancelFunc]
	opener   *opener
	marks    *marks
	synced   []atomic.Int64 // received policies, by zone
	bytes    atomic.Int64
	// messages counts the messages received by all zones.
	messages atomic.Int64
	ended    atomic.Int64 // sessions that ended early

	mu   sync.Mutex
	whys map[string]int // how many ended for a reason; guarded by mu
}

// connectZones opens all connections at once. They run until close. With frames, they take compressed frames.
func connectZones(ctx context.Context, kds string, n int, m *marks, frames bool) *zones {
	return (&zones{frames: frames, opener: newOpener(), marks: m, synced: make([]atomic.Int64, n),
		whys: map[string]int{}}).connect(ctx, kds, n)
}

// connectOffering is connectZones, with frames, for zones that also send what they have.
func connectOffering(ctx context.Context, kds string, n int, m *marks) *zones {
	return (&zones{frames: true, offering: true, ends: make([]atomic.Pointer[context.CancelFunc], n), opener: newOpener(),
		marks: m, synced: make([]atomic.Int64, n), whys: map[string]int{}}).connect(ctx, kds, n)
}

func (z *zones) connect(ctx context.Context, kds string, n int) *zones {
	z.crowd = newCrowd(ctx, "zone", n, func(ctx context.Context, i int) error { return z.stay(ctx, kds, i) })
	return z
}

// mostSessions is the number of sessions of one zone that counts as a failure. That a zone fell behind in a session
// (Aborted) is one at once.
const mostSessions = 10

// stay keeps a zone connected. It reconnects after its stream ends, as real zones do.
func (z *zones) stay(ctx context.Context, kds string, i int) error {
	for session := 1; ; session++ {
		err := z.session(ctx, kds, i)
		if ctx.Err() != nil {
			return nil
		}
		if !z.offering && (session == mostSessions || status.Code(err) == codes.Aborted) {
			return err
		}
		z.ended.Add(1)
		z.note(err.Error())
		z.synced[i].Store(0)
		if err := sleep(ctx, time.Second/2+rand.N(time.Second)); err != nil {
			return err
		}
	}
}

// session runs one session, which leave may end.
func (z *zones) session(ctx context.Context, kds string, i int) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	if z.offering {
		z.ends[i].Store(&end)
	}
	return z.run(ctx, kds, i)
}

// leave ends the session of a zone, which comes back a second later.
func (z *zones) leave(i int) {
	if end := z.ends[i].Load(); end != nil {
		(*end)()
	}
}

// note counts a reason why a session ended early.
func (z *zones) note(why string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.whys[why]++
}

// reasons returns why sessions ended early, the most frequent first.
func (z *zones) reasons() (all []string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for why, n := range z.whys {
		all = append(all, fmt.Sprintf("%6d sessions ended early: %s", n, why))
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all[:min(len(all), 10)]
}

// waitSynced returns once every zone has the given number of policies.
func (z *zones) waitSynced(within time.Duration, policies int) error {
	return z.await(within, func(i int) bool { return z.synced[i].Load() >= int64(policies) })
}

var streamDesc = grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

func dial(address string) (*grpc.ClientConn, error) {
	return dialBy(address, insecure.NewCredentials())
}

func dialBy(address string, proof credentials.TransportCredentials) (*grpc.ClientConn, error) {
	const largest = 1 << 30
	return grpc.NewClient(address, grpc.WithTransportCredentials(proof),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largest), grpc.ForceCodecV2(frames{})))
}

func (z *zones) run(ctx context.Context, kds string, i int) error {
	conn, err := dial(kds)
	if err != nil {
		return err
	}
	defer conn.Close()
	name := zoneName(i)
	ctx = metadata.AppendToOutgoingContext(ctx, "client-id", name, "kds-version", "v3", "features", "hash-suffix")
	stream, err := conn.NewStream(ctx, &streamDesc, "/kuma.mesh.v1alpha1.KDSSyncService/GlobalToZoneSync")
	if err != nil {
		return err
	}
	node, err := zoneNode(name, len(z.synced) > manyZones || z.frames, z.frames)
	if err != nil {
		return err
	}
	for _, t := range []string{"Mesh", countedType, "MeshTimeout", "MeshService", "MeshMultiZoneService"} {
		if err := sendRequest(stream, &discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: t,
			ResourceNamesSubscribe: []string{"*"}}); err != nil {
			return err
		}
	}
	if z.offering {
		var offers sync.WaitGroup
		defer offers.Wait()
		defer conn.Close() // ends the stream before it is waited for
		offers.Go(func() {
			err := serveOffers(ctx, conn, i)
			z.note(fmt.Sprintf("what it sends: %v", err))
			conn.Close()
		})
	}
	short := &corev3.Node{Id: name}
	for {
		var frame []byte
		if err := stream.RecvMsg(&frame); err != nil {
			return err
		}
		z.bytes.Add(int64(len(frame)))
		z.messages.Add(1)
		r, err := z.opener.read(frame)
		if err != nil {
			return err
		}
		for _, mark := range r.marks {
			z.marks.arrive(i, mark)
		}
		if r.typeURL == countedType {
			z.synced[i].Add(int64(len(r.resources)))
		}
		if err := sendRequest(stream, &discovery.DeltaDiscoveryRequest{Node: short, TypeUrl: r.typeURL,
			ResponseNonce: r.nonce}); err != nil {
			return err
		}
	}
}

// manyZones is the number of zones from which they announce support for parts, as Causeway's do. Without it, each zone
// gets its first list in one message, and this process would hold all of these messages at once.
const manyZones = 200

func zoneNode(name string, many, frames bool) (*corev3.Node, error) {
	features := []any{"zone-token", "hash-suffix", "producer-policy-flow", "optional-top-level-target-ref"}
	if many {
		features = append(features, "causeway-parts")
	}
	if frames {
		features = append(features, "causeway-frames")
	}
	meta, err := structpb.NewStruct(map[string]any{
		"control-plane-id": name + "-1", "config": "{}",
		"features": features,
		"version":  map[string]any{"kumaCp": map[string]any{"version": "2.14.3"}},
	})
	return &corev3.Node{Id: name, Metadata: meta}, err
}

func sendRequest(stream grpc.ClientStream, r *discovery.DeltaDiscoveryRequest) error {
	raw, err := proto.Marshal(r)
	if err != nil {
		return err
	}
	return sendMessage(stream, raw)
}

func sendMessage(stream grpc.ClientStream, raw []byte) error {
	err := stream.SendMsg(&raw)
	for errors.Is(err, io.EOF) { // the stream is over; the receiver gets the reason after the unread messages
		var frame []byte
		if ended := stream.RecvMsg(&frame); ended != nil {
			return ended
		}
	}
	return err
}
