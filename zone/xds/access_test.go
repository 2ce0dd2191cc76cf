package xds

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestMarkChangesWhenAccessShrinks: and only then, be the proxy connected or not.
func TestMarkChangesWhenAccessShrinks(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	x := testProxies(s)
	apply := func(op store.Op) {
		t.Helper()
		if _, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{op}}); err != nil {
			t.Fatal(err)
		}
		x.catchUp()
	}
	allow := func(ids string) {
		t.Helper()
		var list []any
		for id := range strings.FieldsSeq(ids) {
			list = append(list, map[string]any{"spiffeId": map[string]any{"type": "Exact", "value": "spiffe://td/" + id}})
		}
		apply(store.Op{Put: testResource(resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default",
			Name: "p"}, nil,
			map[string]any{"rules": []any{map[string]any{"default": map[string]any{"allow": list}}}})})
	}
	dataplane := func(service int) store.Op {
		return store.Op{Put: testResource(dataplaneKey("a"), nil, map[string]any{"networking": map[string]any{
			"address": "127.0.0.1", "inbound": []any{map[string]any{"name": "main", "port": 1, "servicePort": service}}}})}
	}
	apply(dataplane(2))
	allow("one")
	stream := connect(x, "a")
	defer func() { stream.end() }()
	reconnect := func(meanwhile string) func() {
		return func() {
			stream.end()
			allow(meanwhile)
			stream = connect(x, "a")
		}
	}
	for _, step := range []struct {
		what    string
		do      func()
		changes bool
	}{
		{"one more", func() { allow("one two") }, false},
		{"one less", func() { allow("one") }, true},
		{"one more again", func() { allow("one two") }, false},
		{"the same one less again", func() { allow("one") }, true},
		{"more while away", reconnect("one two three"), false},
		{"less while away", reconnect("one three"), true},
		{"another port of the application", func() { apply(dataplane(3)) }, false},
		{"the Dataplane is new, and nobody gets in", func() {
			apply(store.Op{Delete: dataplaneKey("a")})
			allow("")
			apply(dataplane(2))
		}, true},
	} {
		before := stream.proxy.state.Load()
		step.do()
		after := stream.proxy.state.Load()
		if got := before.accesses["main"].mark != after.accesses["main"].mark; got != step.changes {
			t.Errorf("%s: the mark changes: %t", step.what, got)
		}
		if got := !before.sets[kindListener].equal(after.sets[kindListener]); got != step.changes {
			t.Errorf("%s: the listener changes: %t", step.what, got)
		}
		if kinds := after.changed(before); step.what == "one less" &&
			!slices.Equal(kinds, []kind{kindExtension, kindListener}) {
			t.Errorf("%s: told in the order %v", step.what, kinds)
		}
	}
	apply(store.Op{Delete: dataplaneKey("a")})
	if len(x.accesses) != 0 {
		t.Errorf("%d accesses are kept of Dataplanes that are gone", len(x.accesses))
	}
}

// TestInboundThatCannotBeJudged: the DataplaneInsight says why an inbound lets nobody in, for as long as it is so.
func TestInboundThatCannotBeJudged(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	x := testProxies(s)
	apply := func(r *resources.Resource) {
		t.Helper()
		if _, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
			t.Fatal(err)
		}
		x.catchUp()
	}
	allow := func(n int) {
		t.Helper()
		var list []any
		for i := range n {
			list = append(list, map[string]any{"spiffeId": map[string]any{"type": "Exact",
				"value": fmt.Sprintf("spiffe://default.zone-1.mesh.local/ns/shop/sa/client-%d", i)}})
		}
		apply(testResource(resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default", Name: "p"}, nil,
			map[string]any{"rules": []any{map[string]any{"default": map[string]any{"allow": list}}}}))
	}
	apply(testResource(dataplaneKey("a"), nil, map[string]any{"networking": map[string]any{
		"address": "127.0.0.1", "inbound": []any{map[string]any{
			"name": "smtp", "port": 1, "servicePort": 2, "tags": map[string]any{resources.TagServerFirst: "true"},
		}}}}))
	stream := connect(x, "a")
	defer stream.end()
	problem := func() string {
		p := x.proxies[proxyID{Key: dataplaneKey("a")}]
		p.record.mu.Lock()
		defer p.record.mu.Unlock()
		return p.record.problems[problemInbounds]
	}
	for _, step := range []struct {
		identities int
		want       string
	}{{10, ""}, {3000, "inbound smtp denies everybody"}, {10, ""}} {
		allow(step.identities)
		if got := problem(); !strings.HasPrefix(got, step.want) || step.want == "" && got != "" {
			t.Errorf("%d identities: %q", step.identities, got)
		}
	}
}
