package xds

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestListenersAreMarshalledAsMessages: a listener that was put together from marshalled parts has the bytes of its
// message, so that no version depends on how it was made.
func TestListenersAreMarshalledAsMessages(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "network", "*.yaml"))
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, ".golden.yaml") })
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	inbounds := 0
	for _, file := range files {
		x := testProxies(storeOf(t, file))
		for r := range x.cfg.Store.Snapshot().List(store.Query{Type: resources.TypeDataplane, Mesh: "default"}) {
			s := newSession(x)
			if err := s.identify(testNode(r.Name)); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			state := s.proxy.state.Load()
			for _, l := range state.receiving[kindListener] {
				inbounds++
				m, err := l.delta.GetResource().UnmarshalNew()
				if err != nil {
					t.Fatalf("%s: %s: %v", file, l.name, err)
				}
				want, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
				if got := l.delta.GetResource().GetValue(); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: %s has other bytes than its message: %q, want %q, error %v", file, l.name, got, want, err)
				}
			}
			s.end()
		}
	}
	if inbounds == 0 {
		t.Error("there is no listener")
	}
}

// TestNamesInStencils: each gap takes the name, and a message without a gap stays.
func TestNamesInStencils(t *testing.T) {
	t.Parallel()
	const name = "identity_cert:default/dp-1"
	for _, text := range []string{"a %s b %s", "%s", "nothing"} {
		with := func(name string) []byte { return bytes.ReplaceAll([]byte(text), []byte("%s"), []byte(name)) }
		if got, want := newStencil(with(gap(name)), len(name)).with(name), with(name); !bytes.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
