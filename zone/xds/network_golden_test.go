package xds

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
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
	for _, name := range []string{"http", "tcp", "ingress", "external", "gateway", "named", "egress", "by_egress", "subset"} {
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

func asProtoJSON(t *testing.T, r *resource) []byte {
	t.Helper()
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(r.delta.Resource)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func asYAML(t *testing.T, r *resource) []byte {
	t.Helper()
	text, err := yaml.JSONToYAML(asProtoJSON(t, r))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// storeOf reads resources as they are written in this zone; labels that a document gives, also computed ones, hold.
func storeOf(t *testing.T, file string) *store.Memory {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := store.NewMemory()
	for _, document := range strings.Split(string(text), "\n---\n") {
		var head struct {
			Type       resources.Type
			Mesh, Name string
			Labels     map[string]string
			Spec       map[string]any
			Networking map[string]any
			Routing    map[string]any
		}
		raw, err := yaml.YAMLToJSON([]byte(document))
		if err == nil {
			err = json.Unmarshal(raw, &head)
		}
		if err != nil {
			t.Fatal(err)
		}
		if head.Networking != nil {
			head.Spec = map[string]any{"networking": head.Networking}
		}
		if head.Routing != nil {
			head.Spec = map[string]any{"routing": head.Routing}
		}
		r := testResource(resources.Key{Type: head.Type, Mesh: head.Mesh, Name: head.Name}, head.Labels, head.Spec)
		maps.Copy(r.Labels, head.Labels)
		if _, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
