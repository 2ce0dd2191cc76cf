package xds

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestNetworkGolden shows what outbounds and ingresses become: testdata/network/<case>.yaml is a zone's store, and the
// proxy that of the resource named caller.
func TestNetworkGolden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"http", "tcp", "ingress", "external", "gateway", "named", "egress", "by_egress", "subset", "tagged"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", "network", name)
			got := renderedNetwork(t, file+".yaml")
			if *update {
				if err := os.WriteFile(file+".golden.yaml", got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file + ".golden.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("differs from %s.golden.yaml (run with -update and look at the difference):\n%s", file, got)
			}
		})
	}
}

func renderedNetwork(t *testing.T, file string) []byte {
	t.Helper()
	x := testProxies(storeOf(t, file))
	s := newSession(x)
	node := testNode("caller")
	if strings.HasSuffix(file, "named.yaml") {
		node.Metadata = asksForNames(t)
	}
	if x.cfg.Store.Snapshot().Get(dataplaneKey("caller")) == nil {
		node.Id = NodeID("", "caller")
	}
	if err := s.identify(node); err != nil {
		t.Fatal(err)
	}
	state := s.proxy.state.Load()
	s.end()
	if state == nil || state.sending == nil {
		t.Fatal("nothing was built")
	}
	var out bytes.Buffer
	for _, k := range []kind{kindCluster, kindEndpoint, kindListener, kindRoute} {
		for _, r := range state.sending.sets[k] {
			out.WriteString("---\n")
			out.Write(asYAML(t, r))
		}
	}
	return out.Bytes()
}

// asksForNames is the metadata of a node that answers for names.
func asksForNames(t *testing.T) *structpb.Struct {
	t.Helper()
	out, err := structpb.NewStruct(map[string]any{DNSKey: map[string]any{DNSAddress: "127.0.0.1:15053",
		DNSUpstreams: []any{"192.0.2.53:53"}}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// written keeps what asProtoJSON and asYAML returned, by function and message. Most resources of two configurations are
// the same.
var written sync.Map

// onceFor returns what write returned for the same message before.
func onceFor(as string, r *resource, write func() []byte) []byte {
	key := as + r.delta.Resource.GetTypeUrl() + "\x00" + string(r.delta.Resource.GetValue())
	if known, ok := written.Load(key); ok {
		return known.([]byte)
	}
	text := write()
	written.Store(key, text)
	return text
}

func asProtoJSON(t *testing.T, r *resource) []byte {
	t.Helper()
	return onceFor("JSON ", r, func() []byte { return toProtoJSON(t, r) })
}

func toProtoJSON(t *testing.T, r *resource) []byte {
	t.Helper()
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(r.delta.Resource)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func asYAML(t *testing.T, r *resource) []byte {
	t.Helper()
	return onceFor("YAML ", r, func() []byte {
		text, err := yaml.JSONToYAML(asProtoJSON(t, r))
		if err != nil {
			t.Fatal(err)
		}
		return text
	})
}

// storeOf reads resources as they are written in this zone; labels that a document gives, also computed ones, hold.
func storeOf(t *testing.T, file string) *store.Memory {
	t.Helper()
	s := store.NewMemory()
	for _, d := range documentsOf(t, file) {
		r := testResource(resources.Key{Type: d.Type, Mesh: d.Mesh, Name: d.Name}, maps.Clone(d.Labels), d.Spec)
		maps.Copy(r.Labels, d.Labels)
		if _, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

type document struct {
	Type       resources.Type
	Mesh, Name string
	Labels     map[string]string
	Spec       map[string]any
	Networking map[string]any
	Routing    map[string]any
}

// parsed keeps the documents of each file, which tests read hundreds of times.
var parsed sync.Map

// documentsOf returns the documents of a file. They are shared: nobody changes them.
func documentsOf(t *testing.T, file string) []document {
	t.Helper()
	if known, ok := parsed.Load(file); ok {
		return known.([]document)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []document
	for _, one := range strings.Split(string(text), "\n---\n") {
		var d document
		raw, err := yaml.YAMLToJSON([]byte(one))
		if err == nil {
			err = json.Unmarshal(raw, &d)
		}
		if err != nil {
			t.Fatal(err)
		}
		if d.Networking != nil {
			d.Spec = map[string]any{"networking": d.Networking}
		}
		if d.Routing != nil {
			d.Spec = map[string]any{"routing": d.Routing}
		}
		out = append(out, d)
	}
	parsed.Store(file, out)
	return out
}
