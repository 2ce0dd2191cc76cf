package kds

import (
	"errors"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"google.golang.org/grpc/metadata"

	"github.com/causeway-mesh/causeway/resources/store"
)

// TestJoinWhileDraining checks that a stream that is admitted before the server drains, and joins after, leaves nothing
// behind.
func TestJoinWhileDraining(t *testing.T) {
	t.Parallel()
	g := NewGlobal(GlobalConfig{Store: store.NewMemory(), Log: testLog()})
	defer g.Wait()
	g.Drain()
	_, _, _, err := g.enter(&connection{number: 1}, exchange.GlobalToZone, "zone-1", nil, metadata.MD{})
	if !errors.Is(err, ErrDraining) {
		t.Errorf("it joined: %v", err)
	}
	if g.InSession("zone-1") || g.Sessions() != 0 {
		t.Error("the session is in the map, and nobody takes it out")
	}
}
