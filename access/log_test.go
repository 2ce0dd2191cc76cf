package access_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/causeway-mesh/causeway/access"
)

func openLog(t *testing.T, c access.LogConfig) *access.Log {
	t.Helper()
	l, err := access.OpenLog(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func entriesOf(t *testing.T, l *access.Log, q access.LogQuery) []access.Entry {
	t.Helper()
	var out []access.Entry
	if err := l.Read(q, func(e access.Entry) bool { out = append(out, e); return true }); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLogQueryNamesOneThing checks that type, mesh, namespace and name are those of one thing, not of several.
func TestLogQueryNamesOneThing(t *testing.T) {
	l := openLog(t, access.LogConfig{Dir: t.TempDir()})
	changes := []access.ResourceChange{{Type: "A", Mesh: "m", Namespace: "n", Name: "x"}, {Type: "B", Mesh: "m", Name: "y"}}
	for _, e := range []access.Entry{{Event: access.EventWrite, Changes: changes},
		{Event: access.EventDenied, Type: "A", Mesh: "m", Namespace: "n", Name: "y"}} {
		if err := l.Record(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		query access.LogQuery
		want  int
	}{
		{access.LogQuery{Type: "A", Mesh: "m", Namespace: "n", Name: "x"}, 1},
		{access.LogQuery{Type: "A", Name: "y"}, 1}, // not the batch, where A is x
		{access.LogQuery{Name: "y"}, 2},
		{access.LogQuery{Type: "B", Namespace: "n"}, 0},
		{access.LogQuery{Mesh: "m"}, 2},
		{access.LogQuery{Mesh: "other"}, 0},
	} {
		if got := entriesOf(t, l, tt.query); len(got) != tt.want {
			t.Errorf("%+v selects %d entries, want %d", tt.query, len(got), tt.want)
		}
	}
}

func TestLogIsOnDiskBeforeRecordReturns(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, access.LogConfig{Dir: dir})
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			name := fmt.Sprintf("m%d", i)
			if err := l.Record(t.Context(), access.Entry{Event: access.EventWrite, Outcome: access.Done,
				Name: name}); err != nil {
				t.Error(err)
			}
			if !strings.Contains(contents(t, dir), `"`+name+`"`) {
				t.Errorf("%s was acknowledged and is not in a file", name)
			}
		})
	}
	all.Wait()
	var last uint64
	for _, e := range entriesOf(t, l, access.LogQuery{}) {
		if e.Seq != last+1 {
			t.Errorf("seq %d after %d", e.Seq, last)
		}
		last = e.Seq
	}
	if last != 50 {
		t.Errorf("read up to %d, want 50", last)
	}
}

// contents returns the content of all files of the log.
func contents(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Error(err)
	}
	var all strings.Builder
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		all.Write(raw)
	}
	return all.String()
}

// recordDone records an intent and its outcome.
func recordDone(t *testing.T, l *access.Log, name string) {
	t.Helper()
	intent, err := l.Begin(access.Entry{Event: access.EventWrite})
	if err != nil {
		t.Fatal(err)
	}
	e := access.Entry{Event: access.EventWrite, Outcome: access.Done, Name: name}
	e.Mark(intent)
	if err := l.Record(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

func TestSecretsStayOutOfDifferences(t *testing.T) {
	l := openLog(t, access.LogConfig{Dir: t.TempDir()})
	mesh := func(spec string) access.Entry {
		return access.Entry{Event: access.EventWrite, Outcome: access.Done,
			Changes: access.Changes(commitOf(t, "Mesh", "", "default", spec))}
	}
	if err := l.Record(t.Context(), mesh(`{"mtls":{"backends":[{"name":"ca","conf":{"key":{"inline":"c2VjcmV0"},"privateKey":"hush","cert":{"inlineString":"quiet"}}}],"enabledBackend":"ca"}}`)); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(entriesOf(t, l, access.LogQuery{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"c2VjcmV0", "hush", "quiet"} {
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("%q is in %s", secret, raw)
		}
	}
	if !bytes.Contains(raw, []byte("enabledBackend")) {
		t.Errorf("the rest of the difference is missing: %s", raw)
	}
}
