package kds

import (
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

func TestPolicyFromGlobalReachesZones(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	key, spec := permission("before")
	put(t, g.store, written(t, globalHome, key, spec))
	z1 := startZone(t, "zone-1", g.address, store.NewMemory())
	z2 := startZone(t, "zone-2", g.address, store.NewMemory())
	for _, z := range []*testZone{z1, z2} {
		eventually(t, "the policy is in "+z.name, func() bool { return find(z.store, key.Type, "before") != nil })
	}
	got := find(z1.store, key.Type, "before")
	if got.Name != exchange.HashedName(got) || got.Labels[resources.LabelOrigin] != resources.OriginGlobal {
		t.Errorf("copy is %s with labels %v", got.Key, got.Labels)
	}
	if string(got.Spec.JSON()) != spec {
		t.Errorf("spec is %s", got.Spec.JSON())
	}
	key2, spec2 := permission("later")
	put(t, g.store, written(t, globalHome, key2, spec2))
	eventually(t, "the later policy", func() bool { return find(z2.store, key.Type, "later") != nil })
	remove(t, g.store, key)
	eventually(t, "the deletion", func() bool {
		return find(z1.store, key.Type, "before") == nil && find(z2.store, key.Type, "before") == nil
	})
}

func TestServiceAndProducerPolicyCrossZones(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	s1, s2 := store.NewMemory(), store.NewMemory()
	startZone(t, "zone-1", g.address, s1)
	startZone(t, "zone-2", g.address, s2)
	service := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Namespace: "backend-ns", Name: "backend"}
	timeout := resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Namespace: "backend-ns", Name: "producer"}
	consumer := resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Namespace: "frontend-ns", Name: "consumer"}
	put(t, s1,
		written(t, zoneHome("zone-1"), service, `{"ports":[{"port":80}]}`),
		written(t, zoneHome("zone-1"), timeout, `{"to":[{"targetRef":{"kind":"MeshService","name":"backend"},"default":{"http":{"requestTimeout":"5s"}}}]}`),
		written(t, zoneHome("zone-1"), consumer,
			`{"to":[{"targetRef":{"kind":"MeshService","name":"backend","namespace":"backend-ns"},"default":{}}]}`))
	eventually(t, "the producer in zone-2", func() bool {
		return find(s2, timeout.Type, "producer") != nil && find(s2, service.Type, "backend") != nil
	})
	eventually(t, "the consumer on the global", func() bool { return find(g.store, timeout.Type, "consumer") != nil })
	copied := find(s2, timeout.Type, "producer")
	policy, err := resources.SpecAs[resources.Policy](copied)
	if err != nil {
		t.Fatal(err)
	}
	if ref, name := policy.To[0].TargetRef, find(s2, service.Type, "backend").Name; ref.Name != name ||
		ref.Namespace != resources.DefaultSystemNamespace {
		t.Errorf("reference is %+v, want %s", ref, name)
	}
	if copied.Zone() != "zone-1" || copied.Labels[resources.LabelPolicyRole] != "producer" ||
		copied.HomeNamespace() != "backend-ns" {
		t.Errorf("labels are %v", copied.Labels)
	}
	if find(s2, timeout.Type, "consumer") != nil {
		t.Error("a consumer policy crossed to another zone")
	}
}

func TestReconnectWritesNothing(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		g := startGlobal(t, store.NewMemory())
		for _, name := range []string{"a", "b", "c"} {
			key, spec := permission(name)
			put(t, g.store, written(t, globalHome, key, spec))
		}
		s1 := store.NewMemory()
		service := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "backend"}
		put(t, s1, written(t, zoneHome("zone-1"), service, `{"ports":[{"port":80}]}`))
		z := startZone(t, "zone-1", g.address, s1)
		eventually(t, "in sync", func() bool {
			return count(s1, resources.TypeMeshTrafficPermission) == 3 && count(g.store, service.Type) == 1
		})
		types := 0
		for _, d := range resources.Descriptors() {
			if exchange.GlobalToZone.Carries(d) {
				types++
			}
		}
		eventually(t, "all types answered", func() bool { return g.events.count(Acknowledged, "") >= types })
		acknowledged := g.events.count(Acknowledged, "")
		atZone, atGlobal := s1.Snapshot().Revision(), g.store.Snapshot().Revision()
		if restart {
			z.stop()
			startZone(t, "zone-1", g.address, s1)
		} else {
			g.mu.Lock()
			g.sessions["zone-1"].cancel(ErrDraining)
			g.mu.Unlock()
		}
		sent := g.events.count(SessionStarted, "")
		eventually(t, "a second session", func() bool { return sent >= 1 && g.events.count(SessionStarted, "") == 2 })
		eventually(t, "all types answered again",
			func() bool { return g.events.count(Acknowledged, "") >= acknowledged+types })
		if n := g.events.resources(2) + z.events.resources(2); !restart && n != 0 {
			t.Errorf("%d resources were sent again", n)
		}
		if s1.Snapshot().Revision() != atZone || g.store.Snapshot().Revision() != atGlobal {
			t.Errorf("restart=%v: revisions moved: zone %d to %d, global %d to %d", restart, atZone,
				s1.Snapshot().Revision(), atGlobal, g.store.Snapshot().Revision())
		}
	}
}

func TestEachResourceIsEncodedOnce(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	key, _ := permission("p")
	stores := map[string]store.Store{}
	for i := range 10 {
		name := fmt.Sprintf("zone-%d", i)
		stores[name] = store.NewMemory()
		startZone(t, name, g.address, stores[name])
	}
	const writes = 5
	for i := range writes {
		spec := fmt.Sprintf(`{"default":{"allow":[{"sni":{"type":"Exact","value":"a%d"}}]}}`, i)
		put(t, g.store, written(t, globalHome, key, spec))
		for name, s := range stores {
			eventually(t, "the write in "+name, func() bool {
				r := find(s, key.Type, "p")
				return r != nil && string(r.Spec.JSON()) == spec
			})
		}
	}
	if hits, misses := g.Encoder().Stats(); misses != writes || hits != 9*writes {
		t.Errorf("encoded %d times and shared %d times, want %d and %d", misses, hits, writes, 9*writes)
	}
}

func TestDeletionWhileDisconnected(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	key, spec := permission("gone")
	keep, keepSpec := permission("kept")
	put(t, g.store, written(t, globalHome, key, spec), written(t, globalHome, keep, keepSpec))
	s1 := store.NewMemory()
	service := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "backend"}
	put(t, s1, written(t, zoneHome("zone-1"), service, `{"ports":[{"port":80}]}`))
	z := startZone(t, "zone-1", g.address, s1)
	eventually(t, "in sync", func() bool { return count(s1, key.Type) == 2 && count(g.store, service.Type) == 1 })
	z.stop()
	remove(t, g.store, key)
	remove(t, s1, service)
	if count(s1, key.Type) != 2 || count(g.store, service.Type) != 1 {
		t.Fatal("a broken stream deleted something")
	}
	startZone(t, "zone-1", g.address, s1)
	eventually(t, "deleted on both sides", func() bool { return count(s1, key.Type) == 1 && count(g.store, service.Type) == 0 })
	if find(s1, key.Type, "kept") == nil {
		t.Error("the other policy went too")
	}
}
