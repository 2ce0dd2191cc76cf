package kds

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/resources/store"
)

// TestAnswersWithoutReading checks that a zone that reads nothing and answers at random delays no other.
func TestAnswersWithoutReading(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	key, spec := permission("p")
	put(t, s, written(t, globalHome, key, spec))
	g := startGlobal(t, s)
	good := startZone(t, "zone-1", g.address, store.NewMemory())
	eventually(t, "the good zone in sync", func() bool { return find(good.store, key.Type, "p") != nil })
	bad := dialPeer(t, "zone-2", g.address, exchange.OwnFeatures())
	ctx, cancel := context.WithCancel(bad.ctx)
	defer cancel()
	bad.ctx = ctx
	bad.openDown(key.Type)
	bad.ack(bad.receive())
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			if bad.down.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: string(key.Type),
				ResponseNonce: fmt.Sprint(i % 40)}) != nil {
				return
			}
		}
	}()
	noise := make([]byte, 12<<10) // noise that gzip cannot compress
	for i := range 30 {
		for j := range noise {
			noise[j] = 'a' + byte(rand.N(26))
		}
		key, spec := permission(fmt.Sprint("q", i))
		put(t, s, written(t, globalHome, key, strings.Replace(spec, "spiffe://d/", "spiffe://d/"+string(noise), 1)))
		eventually(t, "change "+key.Name+" in the good zone",
			func() bool { return find(good.store, key.Type, key.Name) != nil })
	}
	if ctx.Err() != nil {
		t.Error("changes waited until the zone that reads nothing was gone")
	}
}
