package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestWalkFullDisk asks everything of a global and a zone whose disks are full, and writes until nothing fits:
// afterwards, also after a kill, acknowledged writes are there, and refused ones are not.
func TestWalkFullDisk(t *testing.T) {
	t.Parallel()
	w := newWalk(t, newMesh(t), nil)
	d := &disk{mesh: w.mesh, zone: w.zone}
	servers := map[string]*cluster.Server{"global": w.global, "zone": w.zone}
	for _, s := range servers {
		if !d.onSmallDisk(s) {
			t.Log("the state \"store full\" of TestWalk stands for it")
			return
		}
	}
	for kind, s := range servers {
		w.holds("well", kind, s)
	}
	told := map[string]map[string]bool{}
	for kind, s := range servers {
		free := d.fill(s)
		told[kind] = d.writesUntilFull(s, kind)
		w.holds("disk full", kind, s)
		free()
		d.ready(s)
		w.holds("well", kind, s)
	}
	for kind, s := range servers {
		d.has(s, told[kind])
		s.Kill()
		w.must(s.Start(t.Context()))
		d.has(s, told[kind])
	}
}

// writesUntilFull writes policies until three in a row are refused, and returns those that were acknowledged. The
// answer to each other one is that it was not stored.
func (d *disk) writesUntilFull(s *cluster.Server, of string) map[string]bool {
	d.t.Helper()
	stored, refused := map[string]bool{}, 0
	for i := 0; refused < 3; i++ {
		name := fmt.Sprintf("full-%s-%d", of, i)
		err := d.put(s, name)
		switch {
		case err == nil:
			stored[name], refused = true, 0
		case cluster.StatusOf(err) == http.StatusServiceUnavailable && strings.Contains(err.Error(), `"outcome": "nothing"`):
			stored[name], refused = false, refused+1
		default:
			d.t.Fatalf("%s on a full disk: %v", s.Name(), err)
		}
		if i > 50_000 {
			d.t.Fatalf("%s takes everything on a full disk", s.Name())
		}
	}
	return stored
}

// has waits until a server has what it acknowledged, and nothing that it refused.
func (d *disk) has(s *cluster.Server, told map[string]bool) {
	d.t.Helper()
	d.eventually(s.Name()+" to have what it said", func(ctx context.Context) error {
		all, err := timeouts(ctx, s)
		for name, stored := range told {
			if _, there := all[name]; err == nil && there != stored {
				err = fmt.Errorf("%s was said to be stored: %t, and is there: %t", name, stored, there)
			}
		}
		return err
	})
}
