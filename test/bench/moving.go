package main

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
	"unique"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
)

// movingZones are simulated zones that move from one replica to the next, as Causeway's do: they announce what they
// have, so that they receive only changes.
type movingZones struct {
	*crowd
	marks     *marks
	addresses []string
	// proofs are what each zone proves itself by, if anything.
	proofs  []credentials.TransportCredentials
	synced  []atomic.Int64 // policies that a zone has
	settled []atomic.Bool  // whether a zone has a session in which the counted type was answered
	// sessions counts started sessions, received counts resources of the counted type, for all zones.
	sessions, received atomic.Int64
}

func moveZones(ctx context.Context, addresses []string, n int, m *marks,
	proofs []credentials.TransportCredentials) *movingZones {
	z := &movingZones{marks: m, addresses: addresses, proofs: proofs, synced: make([]atomic.Int64, n), settled: make([]atomic.Bool, n)}
	z.crowd = newCrowd(ctx, "zone", n, z.stay)
	return z
}

// moveWithin is the longest wait of a zone before it moves to the next replica.
const moveWithin = 250 * time.Millisecond

// stay keeps a zone connected to one of the replicas.
func (z *movingZones) stay(ctx context.Context, i int) error {
	have := map[string]string{}
	order := rand.Perm(len(z.addresses))
	for at := 0; ; at++ {
		_ = z.run(ctx, z.addresses[order[at%len(order)]], i, have) // only the next session matters
		z.settled[i].Store(false)
		if err := sleep(ctx, rand.N(moveWithin)); err != nil {
			return nil
		}
	}
}

// run runs one session. have holds the zone's resources of the counted type, by name.
func (z *movingZones) run(ctx context.Context, address string, i int, have map[string]string) error {
	proof := insecure.NewCredentials()
	if z.proofs != nil {
		proof = z.proofs[i]
	}
	conn, err := dialBy(address, proof)
	if err != nil {
		return err
	}
	defer conn.Close()
	name := zoneName(i)
	ctx = metadata.AppendToOutgoingContext(ctx, "client-id", name, "kds-version", "v3", "features", "hash-suffix",
		"features", "causeway-parts", "features", "causeway-resume")
	stream, err := conn.NewStream(ctx, &streamDesc, "/kuma.mesh.v1alpha1.KDSSyncService/GlobalToZoneSync")
	if err != nil {
		return err
	}
	node, err := zoneNode(name, true, false)
	if err != nil {
		return err
	}
	for _, t := range []string{"Mesh", countedType} {
		r := &discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: t, ResourceNamesSubscribe: []string{"*"}}
		if t == countedType {
			r.InitialResourceVersions = have
		}
		if err := sendRequest(stream, r); err != nil {
			return err
		}
	}
	z.sessions.Add(1)
	for {
		var frame []byte
		if err := stream.RecvMsg(&frame); err != nil {
			return err
		}
		r := readResponse(frame)
		z.marks.saw(i, frame)
		if r.typeURL == countedType {
			z.received.Add(int64(len(r.resources)))
			noteVersions(frame, have)
			z.synced[i].Store(int64(len(have)))
			z.settled[i].Store(true)
		}
		if err := sendRequest(stream, &discovery.DeltaDiscoveryRequest{TypeUrl: r.typeURL,
			ResponseNonce: r.nonce}); err != nil {
			return err
		}
	}
}

// Field numbers of envoy.service.discovery.v3.Resource.
const resourceVersion, resourceName = 1, 3

// noteVersions adds the versions in a message.
func noteVersions(frame []byte, have map[string]string) {
	eachField(frame, func(n protowire.Number, v []byte) {
		if n == responseResources {
			// All zones have the same.
			have[unique.Make(string(field(v, resourceName))).Value()] = unique.Make(string(field(v, resourceVersion))).Value()
		}
	})
}
