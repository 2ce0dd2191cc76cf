package xds

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestServerNamesThatAreSpelledAlike: a service of no namespace, whose name begins as that of a namespace does, does
// not get what other zones send to the namespace's own service; what is spelled in one way only is served.
func TestServerNamesThatAreSpelledAlike(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "store.yaml")
	if err := os.WriteFile(file, []byte(`type: MeshService
mesh: default
name: payments.vault
spec: {selector: {dataplaneLabels: {matchLabels: {app: bait}}}, ports: [{port: 80}, {port: 81}]}
---
type: MeshService
mesh: default
name: vault
labels: {k8s.kuma.io/namespace: payments}
spec: {selector: {dataplaneLabels: {matchLabels: {app: vault}}}, ports: [{port: 80}]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	x := testProxies(storeOf(t, file))
	got := map[string]string{}
	for _, b := range x.network.exported() {
		if other, twice := got[b.sni()]; twice {
			t.Errorf("%s leads to %s and to %s", b.sni(), other, b.name)
		}
		got[b.sni()] = b.name
	}
	for sni, want := range map[string]string{
		"sni.msvc.default.zone-1.payments.vault.80": "kri_msvc_default_zone-1_payments_vault_80",
		"sni.msvc.default.zone-1.payments.vault.81": "kri_msvc_default_zone-1__payments.vault_81",
	} {
		if got[sni] != want {
			t.Errorf("%s leads to %q, want %q", sni, got[sni], want)
		}
	}
}

// TestSubsetsOfOneOwnersRoutes: however many subsets of a service one namespace or one other zone asks for, the ingress serves
// those that the service's owner, operators and others ask for; and however many an owner has, not more than its share.
func TestSubsetsOfOneOwnersRoutes(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	var batch store.Batch
	put := func(typ resources.Type, namespace, name, zone string, spec map[string]any) {
		r := testResource(resources.Key{Type: typ, Mesh: "default", Namespace: namespace, Name: name}, nil, spec)
		if zone != "" {
			r.Labels[resources.LabelZone], r.Labels[resources.LabelOrigin] = zone, resources.OriginGlobal
		}
		batch.Ops = append(batch.Ops, store.Op{Put: r})
	}
	route := func(namespace, name, zone, service, of string, versions ...string) {
		var refs []any
		for _, version := range versions {
			refs = append(refs, map[string]any{"kind": "MeshServiceSubset", "name": service, "namespace": of, "port": 80,
				"tags": map[string]any{"version": version}})
		}
		put(resources.TypeMeshTCPRoute, namespace, name, zone, map[string]any{"to": []any{map[string]any{
			"targetRef": map[string]any{"kind": "MeshService", "name": service, "namespace": of},
			"rules":     []any{map[string]any{"default": map[string]any{"backendRefs": refs}}}}}})
	}
	names := func(prefix string, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint(prefix, i))
		}
		return out
	}
	service := func(namespace, name string) {
		put(resources.TypeMeshService, namespace, name, "", map[string]any{"ports": []any{map[string]any{"port": 80}}})
	}
	service("shop", "s")
	route("aaa", "a", "", "s", "shop", names("junk-", 3*maxSubsets)...)
	route("aaa", "a-2", "", "s", "shop", names("more-", 3*maxSubsets)...)
	route("shop", "z", "", "s", "shop", "own")
	route("zzz", "z", "", "s", "shop", "other")
	for i := range 2 * maxOwnerSubsets / maxSubsets {
		service("many", fmt.Sprint("m-", i))
		route("many", fmt.Sprint("m-", i), "", fmt.Sprint("m-", i), "many", names("v", maxSubsets)...)
	}
	if _, err := s.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	versions, many := map[string]bool{}, 0
	for _, b := range testProxies(s).network.subsets() {
		if b.service.KRI.Namespace == "many" {
			many++
			continue
		}
		versions[b.subset["version"]] = true
	}
	if !versions["own"] || !versions["other"] || len(versions) != maxSubsets {
		t.Errorf("the ingress serves %d versions: %v", len(versions), versions)
	}
	if many != maxOwnerSubsets {
		t.Errorf("the ingress serves %d subsets of one owner, want %d", many, maxOwnerSubsets)
	}
}

// TestSubsetsOfManyServices: an owner of routes that ask for a subset of each of many services does not use up what the ingress serves
// of all of them.
func TestSubsetsOfManyServices(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	var batch store.Batch
	put := func(typ resources.Type, namespace, name string, spec map[string]any) {
		batch.Ops = append(batch.Ops, store.Op{Put: testResource(resources.Key{Type: typ, Mesh: "default", Namespace: namespace, Name: name}, nil, spec)})
	}
	route := func(namespace, service string, versions ...string) {
		var refs []any
		for _, version := range versions {
			refs = append(refs, map[string]any{"kind": "MeshServiceSubset", "name": service, "namespace": "many", "port": 80,
				"tags": map[string]any{"version": version}})
		}
		put(resources.TypeMeshTCPRoute, namespace, service, map[string]any{"to": []any{map[string]any{
			"targetRef": map[string]any{"kind": "MeshService", "name": service, "namespace": "many"},
			"rules":     []any{map[string]any{"default": map[string]any{"backendRefs": refs}}}}}})
	}
	for i := range maxOwnerSubsets {
		name := fmt.Sprint("m-", i)
		put(resources.TypeMeshService, "many", name, map[string]any{"ports": []any{map[string]any{"port": 80}}})
		route("aaa", name, "junk", "more")
	}
	route("zzz", "m-5", "one", "two", "three")
	if _, err := s.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	served := map[string]int{}
	for _, b := range testProxies(s).network.subsets() {
		served[b.subset["version"]]++
	}
	if n := served["junk"] + served["more"]; served["one"]+served["two"]+served["three"] != 3 || n != maxOwnerSubsets-3 {
		t.Errorf("the ingress serves %v", served)
	}
}

// TestIngressRetires: the proxy of a ZoneIngress that is deleted serves on until other zones know, and no longer; one
// that is made again in time has lost nothing.
func TestIngressRetires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &presenceWorld{t: t, store: store.NewMemory()}
		w.service(testHome, "s")
		key := resources.Key{Type: resources.TypeZoneIngress, Name: "in"}
		put := func() {
			w.apply(store.Op{Put: testResource(key, nil,
				map[string]any{"networking": map[string]any{"address": "192.0.2.8", "port": 10000}})})
		}
		put()
		w.x = testProxies(w.store)
		s := newSession(w.x)
		node := testNode("in")
		node.Id = NodeID("", "in")
		if err := s.identify(node); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- w.x.Run(ctx) }()
		expect := func(when string, after time.Duration, want int) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := len(s.proxy.state.Load().sets[kindListener]); got != want {
				t.Errorf("%s: %d listeners, want %d", when, got, want)
			}
		}
		expect("at first", 0, 1)
		w.apply(store.Op{Delete: key})
		expect("deleted", retireFor-time.Nanosecond, 1)
		put()
		expect("made again", 2*retireFor, 1)
		w.apply(store.Op{Delete: key})
		expect("deleted again", retireFor-time.Nanosecond, 1)
		expect("other zones know", time.Nanosecond, 0)
		w.apply(store.Op{Delete: resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "s"}})
		s.end()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := len(w.x.presence.left); n != 0 {
			t.Errorf("when %d deleted ingresses left is kept", n)
		}
		if n := len(w.x.presence.retiring); n != 0 {
			t.Errorf("%d are left behind", n)
		}
	})
}

// TestIngressPresence: whether the proxy of an ingress is there, and since when it is not.
func TestIngressPresence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &presenceWorld{t: t, store: store.NewMemory()}
		key := resources.Key{Type: resources.TypeZoneIngress, Name: "in"}
		put := store.Op{Put: testResource(key, nil,
			map[string]any{"networking": map[string]any{"address": "192.0.2.8", "port": 10000}})}
		w.apply(put)
		w.x = testProxies(w.store)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- w.x.Run(ctx) }()
		expect := func(when string, want Presence) {
			t.Helper()
			synctest.Wait()
			if got := w.x.Ingress(key); got != want {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
		}
		expect("at first", Presence{Awaited: true})
		time.Sleep(awaitFor)
		expect("not seen", Presence{})
		s := newSession(w.x)
		node := testNode("in")
		node.Id = NodeID("", "in")
		if err := s.identify(node); err != nil {
			t.Fatal(err)
		}
		expect("there", Presence{Connected: true})
		left := time.Now()
		s.end()
		time.Sleep(time.Minute)
		expect("left", Presence{Left: left})
		w.apply(store.Op{Delete: key})
		synctest.Wait()
		w.apply(put)
		expect("made anew", Presence{})
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestStatesAreKnownWhileChangesAreApplied: a scrape in the middle of a change waits a moment, for a series that is not
// there would end the alert on it.
func TestStatesAreKnownWhileChangesAreApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := testProxies(store.NewMemory())
		for held, want := range map[time.Duration]int{scrapePatience / 2: 4, 2 * scrapePatience: 0} {
			x.mu.Lock()
			out := make(chan prometheus.Metric, 8)
			go func() { byState{x}.Collect(out); close(out) }()
			time.Sleep(held)
			x.mu.Unlock()
			n := 0
			for range out {
				n++
			}
			if n != want {
				t.Errorf("changes take %v: %d series, want %d", held, n, want)
			}
		}
	})
}
