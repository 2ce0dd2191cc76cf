package kds

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestZoneThatIsComparedInPart has a global list one type of all: of the others it is unknown whether there are newer
// resources. Once the global is silent for minutes, that is said of each of them, and no more of all together.
func TestZoneThatIsComparedInPart(t *testing.T) {
	t.Parallel()
	g := startPlainGlobal(t)
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	z := startZone(t, "zone-1", g.address, store.NewMemory(), func(c *ZoneConfig) { c.Now = now })
	if _, types := z.Comparing(""); len(types) > 0 && !z.Connected() {
		t.Errorf("a zone that is away compares %v", types)
	}
	eventually(t, "a session", z.Connected)
	named := func(of resources.Type) bool {
		since, types := z.Comparing("")
		oneSince, one := z.Comparing(of)
		all := slices.Contains(types, of)
		if all != (len(one) == 1 && one[0] == of) {
			t.Errorf("%s is not compared: %v among all, %v alone", of, types, one)
		}
		if all && (since.IsZero() || !since.Equal(oneSince)) {
			t.Errorf("since %s, and %s", since, oneSince)
		}
		return all
	}
	if !named(resources.TypeMeshTimeout) || !named(resources.TypeMeshRetry) {
		t.Error("nothing was compared, and is taken for it")
	}
	if _, types := z.Comparing(resources.TypeDataplane); len(types) > 0 {
		t.Errorf("what no global sends is not compared: %v", types)
	}
	g.list(t, resources.TypeMeshTimeout, "1", nil)
	eventually(t, "one type to be whole", func() bool { return !named(resources.TypeMeshTimeout) })
	if !named(resources.TypeMeshRetry) {
		t.Error("the list of one type is taken for all")
	}
	ahead.Store(int64(silence))
	if _, types := z.Comparing(""); len(types) > 0 {
		t.Errorf("a global that does not serve %v is doubted for ever", types)
	}
	g.list(t, resources.TypeMeshTimeout, "2", nil)
	if _, types := z.Comparing(""); len(types) > 0 {
		t.Errorf("as another type changes, a global that does not serve %v is doubted again", types)
	}
	if _, types := z.Comparing(resources.TypeMeshRetry); len(types) != 1 {
		t.Error("of a type of which the global has said nothing, nothing is unknown")
	}
}
