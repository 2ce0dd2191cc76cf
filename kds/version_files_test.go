package kds

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// remembering runs the files of one server and returns a function that stops it, as its process would.
func remembering(t *testing.T, dir string, s store.Store) (*VersionFiles, func()) {
	t.Helper()
	f := NewVersionFiles(dir, testLog(), s)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	return f, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestWhatCouldNotBeWrittenIsWrittenLater checks that a full disk loses nothing of what is known, even if nothing
// changes afterwards.
func TestWhatCouldNotBeWrittenIsWrittenLater(t *testing.T) {
	t.Parallel()
	above := filepath.Join(t.TempDir(), "data")
	own := store.NewMemory()
	f := NewVersionFiles(filepath.Join(above, "known"), testLog(), own)
	key, spec := permission("p")
	put(t, own, written(t, globalHome, key, spec))
	held := own.Snapshot().Get(key)
	copied := map[string]copyVersion{"p": {version: "v", key: key, revision: held.Revision}}
	f.of("global").update(key.Type, copied, nil)
	<-f.wake
	f.save()
	select {
	case <-f.wake:
	default:
		t.Error("nothing will try again")
	}
	if err := os.Mkdir(above, 0o700); err != nil {
		t.Fatal(err)
	}
	f.save()
	if version, _ := NewVersionFiles(f.Dir, testLog(), own).of("global").versionOf("p", held); version != "v" {
		t.Errorf("after a restart it has the version %q", version)
	}
}

// TestResumeAfterRestarts checks that neither side is sent again what it has after both processes restart. A copy that
// was changed or removed by hand in between is sent again, and nothing else is.
func TestResumeAfterRestarts(t *testing.T) {
	t.Parallel()
	for _, many := range []int{200, 5_000} {
		t.Run(fmt.Sprintf("%d resources", many), func(t *testing.T) { resumeAfterRestarts(t, many) })
	}
}

func resumeAfterRestarts(t *testing.T, many int) {
	key, _ := permission("p0")
	above, below := store.NewMemory(), store.NewMemory()
	var policies, services []*resources.Resource
	for i := range many {
		k, spec := permission(fmt.Sprintf("p%d", i))
		policies = append(policies, written(t, globalHome, k, spec))
	}
	const up = 200
	for i := range up {
		service := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: fmt.Sprintf("s%d", i)}
		services = append(services, written(t, zoneHome("zone-1"), service, `{"ports":[{"port":80}]}`))
	}
	put(t, above, policies...)
	put(t, below, services...)
	upper, lower := t.TempDir(), t.TempDir()
	resync := false
	run := func(wantSent int) {
		t.Helper()
		g := startGlobal(t, above)
		aboveFiles, stopAbove := remembering(t, upper, above)
		g.config.Versions = aboveFiles
		if resync {
			if ended, err := g.Resync(t.Context(), "zone-1"); ended || err != nil {
				t.Errorf("of a zone that has not connected: ended is %v, %v", ended, err)
			}
		}
		belowFiles, stopBelow := remembering(t, lower, below)
		z := startZone(t, "zone-1", g.address, below, func(c *ZoneConfig) { c.Versions = belowFiles })
		eventually(t, "every type answered, both ways", func() bool {
			types := map[exchange.Direction]int{}
			for _, d := range resources.Descriptors() {
				for _, way := range []exchange.Direction{exchange.GlobalToZone, exchange.ZoneToGlobal} {
					if way.Carries(d) {
						types[way]++
					}
				}
			}
			return g.events.count(Acknowledged, "") >= types[exchange.GlobalToZone] &&
				z.events.count(Acknowledged, "") >= types[exchange.ZoneToGlobal] &&
				count(below, key.Type) == many && count(above, resources.TypeMeshService) == up
		})
		if sent := g.events.resources(1) + z.events.resources(1); sent != wantSent {
			t.Errorf("%d resources went over the wire, want %d", sent, wantSent)
		}
		z.stop()
		g.stop()
		stopBelow()
		stopAbove()
	}
	run(many + up)
	run(0)
	if many > 1000 {
		return // the rest is the same for any number
	}

	changed, removed := find(below, key.Type, "p7").Clone(), find(below, key.Type, "p8")
	other, otherSpec := permission("x")
	changed.Spec = written(t, globalHome, other, otherSpec).Spec
	put(t, below, changed)
	remove(t, below, removed.Key)
	run(2)
	if r := find(below, key.Type, "p7"); string(r.Spec.JSON()) != string(find(above, key.Type, "p7").Spec.JSON()) {
		t.Errorf("the copy is still what somebody made of it: %s", r.Spec.JSON())
	}

	// A damaged file costs nothing: the store has the versions too.
	if err := os.WriteFile(filepath.Join(lower, "global.jsonl"), []byte(`{"t":`), 0o600); err != nil {
		t.Fatal(err)
	}
	run(0)

	// Neither does another server of the same store without files.
	upper, lower = t.TempDir(), t.TempDir()
	run(0)

	// A resync that was asked for before the zone came compares all that the zone has.
	resync = true
	run(up)
}
