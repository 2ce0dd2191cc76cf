package identity_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/identity"
)

func trust(t *testing.T, h resources.Home, name, domain string, pems ...[]byte) *resources.Resource {
	t.Helper()
	spec := &resources.MeshTrust{TrustDomain: domain}
	for _, p := range pems {
		spec.CABundles = append(spec.CABundles,
			resources.CABundle{Type: resources.CABundlePEM, PEM: &resources.PEMRef{Value: string(p)}})
	}
	s, err := resources.NewSpecOf(resources.TypeMeshTrust, spec)
	must(t, err)
	return h.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeMeshTrust, Mesh: "default",
		Name: name}, Spec: s})
}

func TestBundlesOf(t *testing.T) {
	t.Parallel()
	ours := newKeeper(t)
	pemOf := func(zone string) []byte {
		keeper := ours
		if zone != "zone-1" {
			keeper = newKeeper(t)
		}
		a, err := identity.NewAuthorities(identity.Config{Keeper: keeper, Zone: zone}).For("default")
		must(t, err)
		return a.PEM()
	}
	one, two := pemOf("zone-1"), pemOf("zone-2")
	zone2, global := resources.Home{Zone: "zone-2"}, resources.Home{}
	leafSVID, err := identity.NewAuthorities(identity.Config{Keeper: ours, Zone: "zone-1"}).Issue(dataplane(t,
		"", "x", nil))
	must(t, err)
	s := store.NewMemory()
	batch := store.Batch{}
	misplaced := trust(t, home, "in-a-namespace", "mine.zone-1.mesh.local", two)
	misplaced.Namespace = "shop"
	misplaced = home.Labelled(misplaced)
	for _, r := range []*resources.Resource{
		trust(t, home, "identity-zone-1", "default.zone-1.mesh.local", one),
		trust(t, zone2, "identity-zone-2", "default.zone-2.mesh.local", two),
		trust(t, zone2, "steals", "default.zone-1.mesh.local", two),
		trust(t, zone2, "steals-suffix", "default.azone-2.mesh.local", two),
		trust(t, zone2, "steals-all", "mesh.local", two),
		trust(t, zone2, "other-mesh", "other.zone-2.mesh.local", two),
		trust(t, global, "company", "company.example", two),
		trust(t, global, "adds", "default.zone-1.mesh.local", one, two),
		trust(t, global, "leaf", "leaf.example", leafSVID.CertificatePEM),
		trust(t, global, "garbage", "garbage.example", []byte("no pem")),
		trust(t, global, "empty", "empty.example"),
		misplaced,
	} {
		batch.Ops = append(batch.Ops, store.Op{Put: r})
	}
	_, err = s.Apply(context.Background(), batch)
	must(t, err)
	bundles := identity.BundlesOf(s.Snapshot(), "default", home)
	got := map[string]int{}
	for _, d := range bundles.Domains() {
		got[d.Name()] = len(bundles.Certificates(d))
	}
	want := map[string]int{"default.zone-1.mesh.local": 2, "default.zone-2.mesh.local": 1, "other.zone-2.mesh.local": 1,
		"company.example": 1}
	if len(got) != len(want) {
		t.Errorf("domains %v, want %v", got, want)
	}
	for d, n := range want {
		if got[d] != n {
			t.Errorf("%s: %d certificates, want %d", d, got[d], n)
		}
	}
	refused := map[string]bool{}
	for _, r := range bundles.Refused {
		refused[r.Trust.Name] = true
	}
	for _, name := range []string{"steals", "steals-suffix", "steals-all", "leaf", "garbage", "empty", "in-a-namespace"} {
		if !refused[name] {
			t.Errorf("%s was believed", name)
		}
	}
	if len(refused) != 7 {
		t.Errorf("refused %v", refused)
	}
}

func TestPublisher(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	put := func(r *resources.Resource) {
		t.Helper()
		_, err := s.Apply(ctx, store.Batch{Ops: []store.Op{{Put: r}}})
		must(t, err)
	}
	mesh := func(name string) *resources.Resource {
		return resource(t, resources.Home{}, resources.Key{Type: resources.TypeMesh, Name: name}, `{}`, nil)
	}
	put(mesh("default"))
	p := &identity.Publisher{
		Store: s, Home: home, Log: slog.New(slog.DiscardHandler),
		Authorities: identity.NewAuthorities(identity.Config{Keeper: newKeeper(t), Zone: "zone-1"}),
	}
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	key := resources.Key{Type: resources.TypeMeshTrust, Mesh: "default", Name: "identity-zone-1"}
	eventually := func(what string, condition func(store.Snapshot) bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; {
			_, next := s.Changed()
			if condition(s.Snapshot()) {
				return
			}
			select {
			case <-next:
			case <-time.After(time.Until(end)):
				t.Fatal("not in time: " + what)
			}
		}
	}
	eventually("published", func(s store.Snapshot) bool { return s.Get(key) != nil })
	first := s.Snapshot().Get(key)
	if spec, err := resources.SpecAs[resources.MeshTrust](first); err != nil ||
		spec.TrustDomain != "default.zone-1.mesh.local" {
		t.Errorf("spec %+v, %v", spec, err)
	}
	revision := s.Snapshot().Revision()
	must(t, p.Ensure(ctx, "default"))
	if got := s.Snapshot().Revision(); got != revision {
		t.Errorf("wrote although nothing differed: revision %d, then %d", revision, got)
	}
	_, err := s.Apply(ctx, store.Batch{Ops: []store.Op{{Delete: key}}})
	must(t, err)
	eventually("put back", func(s store.Snapshot) bool { r := s.Get(key); return r != nil && r.SameContent(first) })
	put(trust(t, home, "identity-zone-1", "default.zone-1.mesh.local", []byte("altered")))
	eventually("altered, put back", func(s store.Snapshot) bool { r := s.Get(key); return r != nil && r.SameContent(first) })
	put(mesh("second"))
	eventually("second mesh", func(s store.Snapshot) bool {
		return s.Get(resources.Key{Type: resources.TypeMeshTrust, Mesh: "second", Name: "identity-zone-1"}) != nil
	})
	_, err = s.Apply(ctx, store.Batch{Ops: []store.Op{{Delete: mesh("default").Key}}})
	must(t, err)
	eventually("removed with the mesh", func(s store.Snapshot) bool { return s.Get(key) == nil })
	cancel()
	must(t, <-done)
}
