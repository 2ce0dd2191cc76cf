package xds

import (
	"bytes"
	"errors"
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
	for backend, sign := range map[string]string{
		"": "",
		`{"type": "OpenTelemetry", "openTelemetry": {"endpoint": "192.0.2.9:4317"}}`:                     "envoy.tracers.opentelemetry",
		`{"type": "Datadog", "datadog": {"url": "http://192.0.2.9:8126"}}`:                               "envoy.tracers.datadog",
		`{"type": "Zipkin", "zipkin": {"url": "http://192.0.2.9:9411/spans", "apiVersion": "httpJson"}}`: "envoy.tracers.zipkin",
	} {
		inbounds, traced := 0, 0
		for _, file := range files {
			s := storeOf(t, file)
			if backend != "" {
				putText(t, s, resources.Key{Type: resources.TypeMeshTrace, Mesh: "default", Name: "all"}, nil,
					`{"targetRef": {"kind": "Mesh"}, "default": {"backends": [`+backend+`]}}`)
			}
			x := testProxies(s)
			for r := range s.Snapshot().List(store.Query{Type: resources.TypeDataplane, Mesh: "default"}) {
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
					got := l.delta.GetResource().GetValue()
					if err != nil || !bytes.Equal(got, want) {
						t.Errorf("%s: %s has other bytes than its message: %q, want %q, error %v", file, l.name, got, want, err)
					}
					if cap(got) != len(got) {
						t.Errorf("%s: %s keeps %d bytes for %d", file, l.name, cap(got), len(got))
					}
					if bytes.Contains(got, []byte(sign)) {
						traced++
					}
				}
				s.end()
			}
		}
		if inbounds == 0 || traced == 0 {
			t.Errorf("backend %s: %d listeners, of which %d have spans", backend, inbounds, traced)
		}
	}
}

// TestNamesOfAnyLengthAreInListeners: the bytes around the name of an identity, among them its length, are never taken for
// a part of the name.
func TestNamesOfAnyLengthAreInListeners(t *testing.T) {
	t.Parallel()
	if _, err := (&target{shared: &shared{}}).answers(true); !errors.Is(err, ErrConfig) {
		t.Errorf("without a name: %v", err)
	}
	for length := len("spiffe://a"); length <= 2*resources.MaxNameBytes; length++ {
		for _, spire := range []bool{false, true} {
			own := secretNames{identity: strings.Repeat("n", length), trust: trustName("default"), spire: spire}
			of := &target{secrets: own, shared: &shared{}}
			made, err := of.answers(true)
			if err != nil {
				t.Fatal(err)
			}
			want, err := of.answering(true)
			if got := made.appendTo(nil, own.identity); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("a listener with a name of %d bytes has %q, want %q, error %v", length, got, want, err)
			}
			by := &sender{target: of, secrets: own}
			cluster, err := by.present(&clusterPart{partKey{name: "c", asks: asks{sni: "a", trust: "b"}}})
			if err != nil {
				t.Fatal(err)
			}
			key := socketKey{asks: asks{sni: "a", trust: "b"}, secrets: unnamedSecrets{secretNames: own}}
			want, err = key.config(own.identity, of.observed.tls.params())
			if got := cluster.delta.GetResource().GetValue(); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("a cluster with a name of %d bytes has %q, want %q, error %v", length, got, want, err)
			}
		}
	}
}

// TestNamesInStencils: each gap takes the name, and a message without a gap stays.
func TestNamesInStencils(t *testing.T) {
	t.Parallel()
	const name = "identity_cert:default/dp-1"
	for _, text := range []string{"a %s b %s", "%s", "nothing"} {
		with := func(name string) []byte { return bytes.ReplaceAll([]byte(text), []byte("%s"), []byte(name)) }
		s := newStencil(with(gap(len(name))), gap(len(name)))
		if got, want := s.appendTo(nil, name), with(name); !bytes.Equal(got, want) || s.size(name) != len(want) {
			t.Errorf("%q of %d bytes, want %q", got, s.size(name), want)
		}
	}
}
