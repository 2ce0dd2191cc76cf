package access_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/causeway-mesh/causeway/access"
)

// TestSearchByNameFindsAll compares a search for a name with the whole log: names that JSON escapes, changes of a batch, and
// lines that cannot be read, which may have been about any name.
func TestSearchByNameFindsAll(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, access.LogConfig{Dir: dir})
	names := []string{"a", "aa", `<b>&"\\`, "zwei\u2028teilig", "\u00e4\u00f6", "name", "damaged"}
	for i := range 20 {
		for k, name := range names {
			e := access.Entry{Event: access.EventWrite, Outcome: access.Done, Type: "MeshTimeout", Name: name}
			if i%2 == 1 {
				other := names[(k+1)%len(names)]
				e.Name, e.Changes = "", []access.ResourceChange{{Type: "MeshTimeout", Name: other}, {Type: "MeshRetry", Name: name}}
			}
			if err := l.Record(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, line := range []int{0, 17, 60, 20*len(names) - 1} {
		damageLine(t, dir, "done-*.jsonl", line)
	}
	cutInTheMiddle(t, dir, 90)
	l = openLog(t, access.LogConfig{Dir: dir})
	whole := entriesOf(t, l, access.LogQuery{})
	for _, name := range append(names, "nowhere") {
		var want []access.Entry
		for _, e := range whole {
			about := e.Event == access.EventDamaged || e.Name == name
			for _, c := range e.Changes {
				about = about || c.Name == name
			}
			if about {
				want = append(want, e)
			}
		}
		if got := entriesOf(t, l, access.LogQuery{Name: name}); !reflect.DeepEqual(got, want) || len(got) < 5 {
			t.Errorf("%q: %d entries, want %d, or they differ", name, len(got), len(want))
		}
	}
}

// cutInTheMiddle takes the second half of a line, as a disk that lost a block does.
func cutInTheMiddle(t *testing.T, dir string, line int) {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(dir, "done-*.jsonl"))
	raw, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(raw, []byte("\n"))
	lines[line] = append(lines[line][:len(lines[line])/2:len(lines[line])/2], '\n')
	if err := os.WriteFile(names[0], bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSearchByNameDecodesLittle holds what the first look at a resource's history costs: the whole log is read for it, and
// only what is about the name is decoded.
func TestSearchByNameDecodesLittle(t *testing.T) {
	const lines = 3000
	l := longLog(t, 1, lines, nil)
	cost := func(q access.LogQuery, want int) float64 {
		return testing.AllocsPerRun(3, func() {
			if got, err := l.Last(q, lines); err != nil || len(got) != want {
				t.Errorf("%+v: %d entries, want %d: %v", q, len(got), want, err)
			}
		})
	}
	whole := cost(access.LogQuery{}, lines)
	if one := cost(access.LogQuery{Name: "n7"}, 1); one > whole/3 {
		t.Errorf("a search for one name: %.0f allocations, and %.0f for the whole log", one, whole)
	}
}

func BenchmarkSearchByName(b *testing.B) {
	l, err := access.OpenLog(access.LogConfig{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	for i := range 10_000 {
		e := access.Entry{Event: access.EventWrite, Outcome: access.Done, User: "somebody@example.com", Method: "token", From: "192.0.2.1:1",
			Request: "PUT /meshes/default/meshtrafficpermissions/p", Status: 200, Verb: "update", Revision: uint64(i),
			Changes: []access.ResourceChange{{Type: "MeshTrafficPermission", Mesh: "default", Name: fmt.Sprint("n", i), Result: "updated", Diff: []access.FieldChange{
				{Path: "spec.rules[0].default.allow[0].spiffeId.value", From: []byte(`"spiffe://default.zone-1.mesh.local/ns/a/sa/b"`), To: []byte(`"spiffe://default.zone-1.mesh.local/ns/a/sa/c"`)}}}}}
		if err := l.Record(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if got, err := l.Last(access.LogQuery{Type: "MeshTrafficPermission", Name: "n7"}, 200); err != nil || len(got) != 1 {
			b.Fatal(got, err)
		}
	}
}
