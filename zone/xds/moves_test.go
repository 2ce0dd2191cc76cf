package xds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// movesFile is what docs/reference/policies.md says of listeners.
const movesFile = "testdata/moves.txt"

// listenersWith returns the versions of the listeners of a proxy of HTTP and of one of TCP, with a policy.
func listenersWith(t *testing.T, policy *resources.Resource) map[string]string {
	t.Helper()
	s := storeOf(t, filepath.Join("testdata", "enforced", "mesh.yaml"))
	if policy != nil {
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: policy}}}); err != nil {
			t.Fatal(err)
		}
	}
	out := map[string]string{}
	for _, name := range []string{"caller", "backend-1"} {
		session := newSession(testProxies(s))
		node := testNode(name)
		node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{AdminKey: structpb.NewNumberValue(9901),
			PushKey: structpb.NewBoolValue(true)}}
		if err := session.identify(node); err != nil {
			t.Fatal(err)
		}
		for _, r := range session.proxy.state.Load().served(kindListener) {
			out[name+" "+r.name] = r.version
		}
		session.end()
	}
	return out
}

// moved names the listeners that both have and that differ, by what they carry.
func moved(a, b map[string]string) string {
	var out []string
	for name, version := range a {
		other, both := b[name]
		if !both || other == version {
			continue // one that comes or goes is of its own
		}
		at := "outbounds"
		if strings.Contains(name, " self_inbound_") {
			at = "inbounds"
		}
		over := "HTTP"
		if strings.Contains(name, "database") || strings.HasSuffix(name, "self_inbound_dp_db") {
			over = "TCP"
		}
		if strings.Contains(name, " causeway_") {
			at, over = name[strings.LastIndexByte(name, ' ')+1:], "own"
		}
		out = append(out, at+" ("+over+")")
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// TestWhatMovesListeners holds the table of what replaces listeners, which the reference shows, against what proxies are
// sent: for each list of each type of policy, and for each field of it.
func TestWhatMovesListeners(t *testing.T) {
	t.Parallel()
	read := func(name string, into any) {
		raw, err := os.ReadFile(filepath.Join("testdata", "enforced", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	fields, received, whole := map[resources.Type]any{}, map[resources.Type]any{}, map[resources.Type][]any{}
	lists := map[resources.Type]map[string]any{}
	read("fields.yaml", &fields)
	read("received.yaml", &received)
	read("whole.yaml", &whole)
	read("confs.yaml", &lists)
	var specs []specOf
	for typ, items := range fields {
		specs = append(specs, specOf{typ, "to", map[string]any{"to": items}, resources.ConfFields(typ)})
	}
	for typ, items := range received {
		specs = append(specs, specOf{typ, "rules", map[string]any{"rules": items}, resources.ReceivedFields(typ)})
	}
	for typ, confs := range whole {
		for _, conf := range confs {
			specs = append(specs, specOf{typ, "default", map[string]any{"default": conf}, resources.ReceivedFields(typ)})
		}
	}
	specs = append(specs, specOf{resources.TypeMeshTimeout, "to", map[string]any{"to": []any{map[string]any{
		"targetRef": map[string]any{"kind": "Mesh"}, "default": received[resources.TypeMeshTimeout].([]any)[0].(map[string]any)["default"]}}},
		resources.ReceivedFields(resources.TypeMeshTimeout)})
	for typ, of := range lists {
		for list, items := range of {
			specs = append(specs, specOf{typ, list, map[string]any{list: items}, nil})
		}
	}
	without := listenersWith(t, nil)
	rows := map[string]map[string]bool{}
	note := func(row, moves string) {
		if moves == "" {
			return
		}
		if rows[row] == nil {
			rows[row] = map[string]bool{}
		}
		for _, one := range strings.Split(moves, ", ") {
			rows[row][one] = true
		}
	}
	for _, s := range specs {
		if s.typ == resources.TypeMeshProxyPatch {
			continue // it says itself what it changes
		}
		all := listenersWith(t, s.policy(t))
		note(fmt.Sprintf("%s %s comes or goes", s.typ, s.list), moved(without, all))
		for _, field := range s.fields {
			if less, ok := s.without(t, field); ok {
				note(fmt.Sprintf("%s %s %s", s.typ, s.list, field), moved(all, listenersWith(t, less.policy(t))))
			}
		}
	}
	var out bytes.Buffer
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&out, "%s: %s\n", row, strings.Join(slices.Sorted(maps.Keys(rows[row])), ", "))
	}
	if *update {
		if err := os.WriteFile(movesFile, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(movesFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("listeners move with:\n%s\n%s says:\n%s", out.Bytes(), movesFile, want)
	}
}

// specOf is a spec of a policy, with the list that has its confs, and the fields of these.
type specOf struct {
	typ    resources.Type
	list   string
	spec   map[string]any
	fields []string
}

func (s *specOf) policy(t *testing.T) *resources.Resource {
	t.Helper()
	return testResource(resources.Key{Type: s.typ, Mesh: "default", Name: "p"}, nil, s.spec)
}

// without is the spec without a field, or with another address in it; ok is false if it has none of the name.
func (s *specOf) without(t *testing.T, field string) (out *specOf, ok bool) {
	t.Helper()
	raw, err := json.Marshal(s.spec)
	if err != nil {
		t.Fatal(err)
	}
	path, text := strings.Split(field, "."), string(raw)
	changes := slices.Contains([]string{"endpoint", "url"}, path[len(path)-1]) && strings.Contains(text, `"`+path[len(path)-2]+`":`)
	if changes {
		text = strings.ReplaceAll(text, "192.0.2.9", "192.0.2.8")
	}
	less := map[string]any{}
	if err := json.Unmarshal([]byte(text), &less); err != nil {
		t.Fatal(err)
	}
	switch items, _ := less[s.list].([]any); {
	case changes:
		ok = true
	case s.list == "default":
		ok = takeOut(less["default"], path)
	default:
		for _, item := range items {
			ok = takeOut(item.(map[string]any)["default"], path) || ok
		}
	}
	return &specOf{s.typ, s.list, less, nil}, ok
}
