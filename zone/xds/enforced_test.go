package xds

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestWhatIsCalledEnforced holds what servers say of policies against what proxies are sent: with a policy of each
// type, with each list that the type has, a proxy's configuration differs from the one without it where
// resources.Enforced says so, and nowhere else.
func TestWhatIsCalledEnforced(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("testdata", "enforced", "confs.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	confs := map[resources.Type]map[string]any{}
	if err := yaml.Unmarshal(raw, &confs); err != nil {
		t.Fatal(err)
	}
	without := sentWith(t, nil)
	if without == nil {
		t.Fatal("nothing was built")
	}
	for _, d := range resources.Descriptors() {
		if d.Policy == nil {
			continue
		}
		takes := resources.Enforced(d.Type)
		for list, has := range map[string]struct{ shape, takes bool }{
			"to": {d.Policy.To, takes.To}, "from": {d.Policy.From, takes.From}, "rules": {d.Policy.Rules, takes.Rules},
			"default": {d.Policy.Single, takes.Single},
		} {
			conf := confs[d.Type][list]
			if has.shape != (conf != nil) {
				t.Errorf("%s: its shape has %s: %v; testdata/enforced/confs.yaml: %v", d.Type, list, has.shape, conf)
				continue
			}
			if !has.shape {
				continue
			}
			policy := testResource(resources.Key{Type: d.Type, Mesh: "default", Name: "p"}, nil, map[string]any{list: conf})
			if differs := !bytes.Equal(sentWith(t, policy), without); differs != has.takes {
				t.Errorf("%s.%s: a proxy is configured by it: %v; resources.Enforced: %v", d.Type, list, differs, has.takes)
			}
			parts, all := resources.Unenforced(policy)
			if (len(parts) > 0) == has.takes || all == has.takes {
				t.Errorf("%s.%s: enforced: %v; resources.Unenforced: %q, all of it: %v", d.Type, list, has.takes, parts, all)
			}
		}
	}
}

// configWith is all that the proxy of the Dataplane caller is sent, nil where nothing can be built.
func configWith(t *testing.T, policy *resources.Resource) []byte {
	return writtenWith(t, policy, asYAML)
}

// sentWith is the same, to compare: YAML takes longer to write than all else.
func sentWith(t *testing.T, policy *resources.Resource) []byte {
	return writtenWith(t, policy, asProtoJSON)
}

func writtenWith(t *testing.T, policy *resources.Resource, as func(*testing.T, *resource) []byte) []byte {
	t.Helper()
	s := storeOf(t, filepath.Join("testdata", "enforced", "mesh.yaml"))
	if policy != nil {
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: policy}}}); err != nil {
			t.Fatal(err)
		}
	}
	session := newSession(testProxies(s))
	defer session.end()
	node := testNode("caller")
	node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{AdminKey: structpb.NewNumberValue(9901),
		PushKey: structpb.NewBoolValue(true)}}
	if err := session.identify(node); err != nil {
		t.Fatal(err)
	}
	state := session.proxy.state.Load()
	if state == nil {
		return nil
	}
	var out bytes.Buffer
	for k := range kinds {
		for _, r := range state.served(k) {
			text, err := json.Marshal(string(as(t, r)))
			if err != nil {
				t.Fatal(err)
			}
			out.Write(text)
		}
	}
	return out.Bytes()
}
