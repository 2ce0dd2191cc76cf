package main

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// movingZones are simulated zones that move from one replica to the next, as Causeway's do: they announce what they
// have, so that they receive only changes.
type movingZones struct {
	*crowd
	marks     *marks
	addresses []string
	// proofs are what each zone proves itself by, if anything.
	proofs  []credentials.TransportCredentials
	nothing *holding
	synced  []atomic.Int64 // policies that a zone has
	settled []atomic.Bool  // whether a zone has a session in which the counted type was answered
	// sessions counts started sessions, received counts resources of the counted type, for all zones.
	sessions, received atomic.Int64
	said               atomic.Int64 // bytes in which a zone says what it has
}

func moveZones(ctx context.Context, addresses []string, n int, m *marks,
	proofs []credentials.TransportCredentials) *movingZones {
	z := &movingZones{marks: m, addresses: addresses, proofs: proofs, nothing: newHolding(),
		synced: make([]atomic.Int64, n), settled: make([]atomic.Bool, n)}
	z.crowd = newCrowd(ctx, "zone", n, z.stay)
	return z
}

// moveWithin is the longest wait of a zone before it moves to the next replica.
const moveWithin = 250 * time.Millisecond

// stay keeps a zone connected to one of the replicas.
func (z *movingZones) stay(ctx context.Context, i int) error {
	has := z.nothing
	order := rand.Perm(len(z.addresses))
	for at := 0; ; at++ {
		has, _ = z.run(ctx, z.addresses[order[at%len(order)]], i, has) // only the next session matters
		z.settled[i].Store(false)
		if err := sleep(ctx, rand.N(moveWithin)); err != nil {
			return nil
		}
	}
}

// run runs one session of a zone that has something, and returns what it has at its end.
func (z *movingZones) run(ctx context.Context, address string, i int, has *holding) (*holding, error) {
	proof := insecure.NewCredentials()
	if z.proofs != nil {
		proof = z.proofs[i]
	}
	conn, err := dialBy(address, proof)
	if err != nil {
		return has, err
	}
	defer conn.Close()
	name := zoneName(i)
	ctx = metadata.AppendToOutgoingContext(ctx, "client-id", name, "kds-version", "v3", "features", "hash-suffix",
		"features", "causeway-parts", "features", "causeway-resume")
	stream, err := conn.NewStream(ctx, &streamDesc, "/kuma.mesh.v1alpha1.KDSSyncService/GlobalToZoneSync")
	if err != nil {
		return has, err
	}
	node, err := zoneNode(name, true, false)
	if err != nil {
		return has, err
	}
	for _, t := range []string{"Mesh", countedType} {
		request, err := proto.Marshal(&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: t, ResourceNamesSubscribe: []string{"*"}})
		if err != nil {
			return has, err
		}
		if t == countedType {
			request = append(request, has.said...)
		}
		if err := sendMessage(stream, request); err != nil {
			return has, err
		}
	}
	z.sessions.Add(1)
	for {
		var frame []byte
		if err := stream.RecvMsg(&frame); err != nil {
			return has, err
		}
		r := readResponse(frame)
		z.marks.saw(i, frame)
		if r.typeURL == countedType {
			z.received.Add(int64(len(r.resources)))
			if has, err = has.with(frame); err != nil {
				return has, err
			}
			z.said.Store(int64(len(has.said)))
			z.synced[i].Store(int64(len(has.versions)))
			z.settled[i].Store(true)
		}
		if err := sendRequest(stream, &discovery.DeltaDiscoveryRequest{TypeUrl: r.typeURL,
			ResponseNonce: r.nonce}); err != nil {
			return has, err
		}
	}
}
