package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/peer"
)

// strange is a zone whose global misbehaves.
type strange struct {
	*mesh
	zone   *cluster.Server
	global *peer.Global
	round  int
	copies []string // the resources from the global, by name
}

// newStrange starts a zone whose global is the test, and gives it some resources.
func newStrange(t *testing.T, copies int) *strange {
	t.Helper()
	m := &strange{mesh: newCluster(t)}
	var err error
	m.global, err = peer.StartGlobal()
	m.must(err)
	t.Cleanup(func() {
		if err := m.global.Close(); err != nil {
			t.Error(err)
		}
	})
	m.zone, err = m.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Args: []string{"--global", m.global.URL()}})
	m.must(err)
	for i := range copies {
		m.copies = append(m.copies, fmt.Sprintf("of-global-%02d", i))
	}
	m.behaves()
	return m
}

// zoneMemory limits a zone's heap, whatever its global does.
const zoneMemory = 256 << 20

// TestMisbehavingGlobals checks that, whatever its global does, a zone keeps its resources and accepts its own writes.
// Once the global behaves again, both sides agree at once.
func TestMisbehavingGlobals(t *testing.T) {
	t.Parallel()
	m := newStrange(t, 20)
	for _, tt := range []struct {
		name      string
		misbehave func(*strange, *peer.Session) error
	}{
		{"garbage", (*strange).garbage},
		{"oversized", (*strange).oversized},
		{"repeated nonces", (*strange).repeatedNonces},
		{"acknowledges unknown nonces", (*strange).unknownNonces},
		{"refuses everything", (*strange).refusesAll},
		{"has nothing any more", (*strange).forgetsAll},
		{"removes what is the zone's", (*strange).removesTheZones},
		{"never reads", (*strange).neverReads},
		{"the zone's own labels", (*strange).anothersLabels},
		{"10,000 types", (*strange).manyTypes},
		{"a bomb in a frame", (*strange).bomb},
		{"a frame that holds more than it says", (*strange).hiddenBomb},
		{"a frame of another dictionary", (*strange).anotherDictionary},
		{"a frame cut short", (*strange).frameCutShort},
		{"a role in a frame", (*strange).framedRole},
		{"ends each session at once", (*strange).hangsUp},
	} {
		began := time.Now()
		// After a restart, a zone reconnects quickly. The later checks must run in this process.
		m.must(m.zone.Stop(t.Context()))
		m.must(m.zone.Start(t.Context()))
		s := m.session()
		ended := make(chan error, 1)
		go func() { ended <- tt.misbehave(m, s) }()
		select {
		case err := <-ended:
			t.Logf("%s: it has done its worst", tt.name)
			ended <- err
		case <-time.After(misbehaviour):
			t.Logf("%s: it hangs in the middle of it", tt.name)
		}
		m.stands(tt.name)
		s.End()
		if err := <-ended; err != nil {
			t.Logf("%s: its session has ended (%v)", tt.name, err)
		}
		m.behaves()
		t.Logf("%s: over after %s", tt.name, time.Since(began).Round(time.Millisecond))
	}
}

// session returns the next session that the zone opens.
func (m *strange) session() *peer.Session {
	m.t.Helper()
	select {
	case s := <-m.global.Sessions():
		return s
	case <-time.After(reconnectPatience):
		m.t.Fatal("the zone does not connect")
		return nil
	}
}

// behaves runs one correct session, in which something changes on both sides.
func (m *strange) behaves() {
	m.t.Helper()
	m.round++
	value := fmt.Sprint(m.round)
	s := m.session()
	defer s.End()
	m.must(m.gives(s, "Mesh",
		peer.Resource{Type: "Mesh", Name: "default", SpecType: "type.googleapis.com/kuma.mesh.v1alpha1.Mesh"}))
	var all []peer.Resource
	for _, name := range m.copies {
		all = append(all, m.copyOf(name, value))
	}
	m.must(m.gives(s, "MeshTimeout", all...))
	m.must(m.zone.API.Put(m.t.Context(), "/meshes/default/meshtimeouts/from-zone", timeoutOf("from-zone", value)))
	m.must(s.Subscribe("MeshTimeout"))
	for {
		r, err := s.Received()
		m.must(err)
		m.must(s.Ask(&discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()}))
		i := slices.IndexFunc(r.GetResources(),
			func(it *discovery.Resource) bool { return strings.HasPrefix(it.GetName(), "from-zone") })
		if i >= 0 && bytes.Contains(r.GetResources()[i].GetResource().GetValue(), []byte(`"`+value+"ms")) {
			break
		}
	}
	m.stands("after all is well")
	items, err := timeouts(m.t.Context(), m.zone)
	m.must(err)
	for name, it := range items {
		if got := timeoutValue(it); got != value {
			m.t.Errorf("%s is %s, want %s", name, got, value)
		}
	}
}

func (m *strange) copyOf(name, value string) peer.Resource {
	return peer.Resource{Type: "MeshTimeout", Name: name, Mesh: "default",
		Labels: map[string]string{"kuma.io/origin": "global", "kuma.io/display-name": name},
		Spec:   `{"to":[{"targetRef":{"kind":"Mesh"},"default":{"http":{"requestTimeout":"` + value + `ms"}}}]}`}
}

// gives sends a complete list, and expects it to be acknowledged.
func (m *strange) gives(s *peer.Session, t string, all ...peer.Resource) error {
	r := &discovery.DeltaDiscoveryResponse{TypeUrl: t, Nonce: "good-" + t}
	for _, one := range all {
		item, err := one.Wire(fmt.Sprint("version-", m.round))
		if err != nil {
			return err
		}
		r.Resources = append(r.Resources, item)
	}
	if err := s.Send(r); err != nil {
		return err
	}
	answer, err := s.Answered(r.GetNonce())
	if err == nil && answer.GetErrorDetail() != nil {
		err = errors.New(answer.GetErrorDetail().GetMessage())
	}
	return err
}

// stands checks that the zone has the global's resources and its own, and accepts writes.
func (m *strange) stands(after string) {
	m.t.Helper()
	m.must(m.zone.Alive())
	m.must(m.zone.API.Put(m.t.Context(), "/meshes/default/meshtimeouts/from-zone",
		timeoutOf("from-zone", fmt.Sprint(m.round))))
	items, err := timeouts(m.t.Context(), m.zone)
	m.must(err)
	want := append([]string{"from-zone"}, m.copies...)
	if got := slices.Sorted(maps.Keys(items)); !slices.Equal(got, want) {
		m.t.Fatalf("%s: the zone has %q", after, got)
	}
	m.must(m.zone.API.Get(m.t.Context(), "/meshes/default", nil))
	heap, err := m.zone.Metric(m.t.Context(), "go_memstats_heap_inuse_bytes")
	if err != nil || heap > zoneMemory {
		m.t.Errorf("%s: the zone has %v bytes on its heap (%v)", after, heap, err)
	}
}
