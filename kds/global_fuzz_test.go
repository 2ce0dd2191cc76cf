package kds

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// FuzzGlobalSession plays sequences of what a zone can send, on both streams and in reports, to a real global. A second
// zone keeps one session throughout and gets everything that is written; what the evil zone did not write is unchanged.
func FuzzGlobalSession(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, 0, 4, 4, 0, 0, 7, 0, 0, 4, 0, 0})                  // subscribes, and acknowledges
	f.Add([]byte{0, 0, 0, 3, 0, 1, 5, 1, 1, 7, 1, 0, 5, 5, 1, 8, 1, 0})         // has something, and refuses
	f.Add([]byte{1, 0, 0, 9, 0, 5, 9, 0, 13, 11, 0, 0, 9, 16, 21, 9, 48, 2})    // sends, removes, lists
	f.Add([]byte{14, 12, 0, 14, 5, 0, 14, 9, 1, 0, 0, 0, 12, 1, 0, 1, 0, 0})    // reports, reconnects
	f.Add([]byte{0, 0, 0, 1, 0, 0, 2, 8, 1, 6, 0, 1, 13, 0, 0, 15, 0, 0, 0, 0}) // unknown types, half closed
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := newToll()
		playGlobal(t, raw)
		c.check(t)
	})
}

func playGlobal(t *testing.T, raw []byte) {
	s := store.NewMemory()
	key, spec := permission("own")
	other := written(t, zoneHome("zone-9"), resources.Key{Type: resources.TypeMeshService, Mesh: "default",
		Name: "other"}, `{}`)
	put(t, s, written(t, globalHome, key, spec), other)
	untouched := map[resources.Key]uint64{key: s.Snapshot().Get(key).Revision,
		other.Key: s.Snapshot().Get(other.Key).Revision}
	// Without a guard: a panic ends the process, and so the fuzzer finds it.
	g := NewGlobal(GlobalConfig{
		inspect: checkInvariants(t),
		Store:   s, Status: store.NewMemory(), Validate: resources.ValidatePeer, SendTimeout: 5 * time.Second,
		MaxMessageSize: 2048, Log: testLog(),
		AcceptDeletes: func(string, resources.Type) bool { return true },
	})
	l, target := listenSomewhere(t)
	stop := serveOn(t, l, g.Register)
	honest := newHonestZone(t, target)
	z := &evilZone{t: t, global: g, store: s, target: target}
	for todo := (&script{rest: raw}); ; {
		op, a, b, ok := todo.next()
		if !ok {
			break
		}
		z.play(op, a, b)
	}
	marker, markerSpec := permission("marker")
	put(t, s, written(t, globalHome, marker, markerSpec))
	honest.waitFor("marker-")
	honest.stop()
	checkShown(t, g)
	z.hangUp()
	g.Drain()
	stop()
	g.Wait()
	for key, revision := range untouched {
		if r := s.Snapshot().Get(key); r == nil || r.Revision != revision {
			t.Errorf("%s is %v", key, r)
		}
	}
	for _, d := range resources.Descriptors() {
		for r := range s.Snapshot().List(store.Query{Type: d.Type}) {
			if zone := r.Zone(); zone != "" && zone != "evil" && r.Key != other.Key {
				t.Errorf("%s is zone %s's", r.Key, zone)
			}
		}
	}
	if n := len(g.Refusals("evil")); n > tracker.MaxRefusals {
		t.Errorf("%d refusals are kept", n)
	}
}

// checkShown checks that the zone's state can be shown to operators, whatever the zone sent.
func checkShown(t *testing.T, g *Global) {
	t.Helper()
	shown := map[string]any{"status": g.Statuses(), "state": g.State("evil"), "report": g.LastReport("evil")}
	if r := g.LastReport("evil"); r != nil {
		shown["conditions"] = r.Conditions()
	}
	if _, err := json.Marshal(shown); err != nil {
		t.Errorf("what is known of the zone cannot be shown: %v", err)
	}
}

// honestZone subscribes to permissions and acknowledges them, in one session.
type honestZone struct {
	t      *testing.T
	conn   *grpc.ClientConn
	cancel context.CancelFunc
	names  *inbox[string]
}

func newHonestZone(t *testing.T, target string) *honestZone {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := withoutEnd()
	h := &honestZone{t: t, conn: conn, cancel: cancel}
	stream, err := kdspb.NewKDSSyncServiceClient(conn).GlobalToZoneSync(metadata.AppendToOutgoingContext(ctx,
		metadataClientID, "honest"))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: string(resources.TypeMeshTrafficPermission),
		Node: nodeOf("honest", Peer{Features: exchange.OwnFeatures()})}); err != nil {
		t.Fatal(err)
	}
	var ready []string
	h.names = readInto(func() (string, error) {
		for len(ready) == 0 {
			m, err := openedFrames(stream.Recv)()
			if err != nil {
				return "", err
			}
			for _, r := range m.GetResources() {
				ready = append(ready, r.GetName())
			}
			if err := stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: m.GetTypeUrl(),
				ResponseNonce: m.GetNonce()}); err != nil {
				return "", err
			}
		}
		name := ready[0]
		ready = ready[1:]
		return name, nil
	})
	return h
}

// waitFor fails unless a resource arrives in the session that the zone began with.
func (h *honestZone) waitFor(prefix string) {
	h.t.Helper()
	if _, ok := h.names.take(10*time.Second, func(name string) bool { return strings.HasPrefix(name, prefix) }); !ok {
		h.t.Errorf("the zone beside it did not get %s; its stream has ended: %v", prefix, h.names.over())
	}
}

func (h *honestZone) stop() {
	h.cancel()
	_ = h.conn.Close()
	<-h.names.done
}
