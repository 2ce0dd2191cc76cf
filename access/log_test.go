package access_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/place"
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

func TestLogGoesOnAfterACrashInTheMiddleOfALine(t *testing.T) {
	dir := t.TempDir()
	first := openLog(t, access.LogConfig{Dir: dir})
	for range 3 {
		if err := first.Record(t.Context(), access.Entry{Event: access.EventWrite, Outcome: access.Done}); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "done-*.jsonl"))
	f, err := os.OpenFile(names[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"seq":4,"time":"2026-`); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	second := openLog(t, access.LogConfig{Dir: dir})
	if err := second.Record(t.Context(), access.Entry{Event: access.EventDelete, Outcome: access.Done}); err != nil {
		t.Fatal(err)
	}
	got := entriesOf(t, second, access.LogQuery{})
	if len(got) != 4 || got[3].Seq != 4 || got[3].Event != access.EventDelete {
		t.Errorf("entries %+v", got)
	}
	for in := bufio.NewScanner(strings.NewReader(contents(t, dir))); in.Scan(); {
		if !json.Valid(in.Bytes()) {
			t.Errorf("not a line of JSON: %s", in.Text())
		}
	}
}

// TestDamagedLinesCostNoOthers damages a line of the newest file of outcomes, or of intents. All other lines stay, also
// in the files, numbering continues after them, and readers see the damage.
func TestDamagedLinesCostNoOthers(t *testing.T) {
	for _, which := range []struct {
		file string
		line int
		want string
		kept int
	}{
		{"done-*.jsonl", 0, "line 1 of audit/done-00000000000000000001.jsonl", 5},
		{"done-*.jsonl", 3, "line 4 of audit/done-00000000000000000001.jsonl", 5},
		{"done-*.jsonl", 5, "line 6 of audit/done-00000000000000000001.jsonl", 5},
		{"intents.jsonl", 0, "audit/intents.jsonl", 6},
	} {
		dir := t.TempDir()
		first := openLog(t, access.LogConfig{Dir: dir})
		for i := range 6 {
			recordDone(t, first, fmt.Sprint("n", i))
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		damageLine(t, dir, which.file, which.line)
		for range 2 { // the second start finds what the first one left
			again := openLog(t, access.LogConfig{Dir: dir})
			recordDone(t, again, "since")
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		}
		var kept, told, since int
		last := uint64(0)
		for _, e := range entriesOf(t, openLog(t, access.LogConfig{Dir: dir}), access.LogQuery{Outcome: access.Done}) {
			if e.Seq <= last {
				t.Errorf("%v: seq %d after %d", which, e.Seq, last)
			}
			last = e.Seq
			switch {
			case e.Event == access.EventDamaged && strings.Contains(e.Reason, which.want):
				told++
			case e.Name == "since":
				since++
			default:
				kept++
			}
		}
		if kept != which.kept || told != 1 || since != 2 {
			t.Errorf("%v: %d lines are kept, want %d; the damage is told of %d times; %d of 2 lines were written since",
				which, kept, which.kept, told, since)
		}
	}
}

// TestLogThatOthersCut checks that a file of the log that somebody cuts while the server runs costs what was cut off, and
// nothing that is recorded later; the log tells of it.
func TestLogThatOthersCut(t *testing.T) {
	for name, to := range map[string]int64{"to nothing": 0, "in the middle of a line": 30} {
		dir := t.TempDir()
		l := openLog(t, access.LogConfig{Dir: dir})
		recordDone(t, l, "before")
		files, err := filepath.Glob(filepath.Join(dir, "done-*.jsonl"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		if err := os.Truncate(files[0], to); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			recordDone(t, l, "after")
			after, told := 0, 0
			for _, e := range entriesOf(t, l, access.LogQuery{}) {
				switch {
				case e.Name == "after":
					after++
				case e.Event == access.EventDamaged && strings.Contains(e.Reason, "was cut from"):
					told++
				}
			}
			if after == 0 || told != 1 {
				t.Errorf("cut %s: %d of what was recorded since is there, the cut is told of %d times", name, after, told)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			l = openLog(t, access.LogConfig{Dir: dir})
		}
	}
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

// damageLine damages a line in the newest file that matches a pattern, and keeps its length.
func damageLine(t *testing.T, dir, pattern string, line int) {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(dir, pattern))
	path := names[len(names)-1]
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(raw, []byte("\n"))
	lines[line][0] ^= 1
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLogIsBounded(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, access.LogConfig{Dir: dir, MaxFileBytes: 2000, MaxFiles: 3})
	for i := range 200 {
		outcome := access.Done
		if i%2 == 0 {
			outcome = access.Denied
		}
		if err := l.Record(t.Context(), access.Entry{Event: access.EventWrite, Outcome: outcome,
			Name: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"done", "refused"} {
		names, _ := filepath.Glob(filepath.Join(dir, kind+"-*.jsonl"))
		if len(names) != 3 {
			t.Errorf("%s: %d files, want 3", kind, len(names))
		}
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() > 2200 || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %d bytes, mode %o", name, info.Size(), info.Mode().Perm())
			}
		}
	}
	got := entriesOf(t, l, access.LogQuery{After: 190})
	if len(got) != 10 || got[0].Seq != 191 || got[9].Seq != 200 {
		t.Errorf("the last entries are %+v", got)
	}
}

// A flood of refusals is counted and does not push out what was done.
func TestRefusalsAreCountedAboveARate(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, access.LogConfig{Dir: dir, MaxFileBytes: 4000, MaxFiles: 2})
	write := access.Entry{Event: access.EventWrite, Outcome: access.Done, Name: "kept"}
	if err := l.Record(t.Context(), write); err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		if err := l.Record(t.Context(), access.Entry{Event: access.EventLogin, Outcome: access.Denied}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Record(t.Context(), write); err != nil {
		t.Fatal(err)
	}
	got := entriesOf(t, l, access.LogQuery{Outcome: access.Done})
	if len(got) != 2 {
		t.Fatalf("%d of 2 writes are left", len(got))
	}
	if got[1].Suppressed == 0 || got[1].Suppressed > 2000 {
		t.Errorf("%d refusals were told of as counted only", got[1].Suppressed)
	}
}

func TestLogThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, access.LogConfig{Dir: dir, MaxFileBytes: 1})
	record := func() error {
		return l.Record(t.Context(), access.Entry{Event: access.EventWrite, Outcome: access.Done})
	}
	if err := record(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := record(); !errors.Is(err, access.ErrAudit) {
		t.Errorf("error %v, want ErrAudit", err)
	}
	if err := l.Ready(t.Context()); !errors.Is(err, access.ErrAudit) {
		t.Errorf("ready: %v, want ErrAudit", err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if err := l.Ready(t.Context()); err != nil {
		t.Errorf("ready after it can be written again: %v", err)
	}
	if err := record(); err != nil {
		t.Error(err)
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

// TestLogInAnyFolder checks that the name of a folder is no pattern: a log is found where it was, continues after a
// restart, and keeps to its bounds.
func TestLogInAnyFolder(t *testing.T) {
	for _, name := range []string{"a[1]", "b*", "c?", `d\e`} {
		dir := filepath.Join(t.TempDir(), name)
		for i := range 3 {
			l := openLog(t, access.LogConfig{Dir: dir, MaxFileBytes: 1, MaxFiles: 2})
			recordDone(t, l, fmt.Sprint(i))
			if got := len(entriesOf(t, l, access.LogQuery{})); got != min(i+1, 2) {
				t.Errorf("%s: %d entries after %d starts", name, got, i+1)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestLogThatMoves checks that nothing is recorded, and no change is allowed, while readers would not find the log.
func TestLogThatMoves(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	l := openLog(t, access.LogConfig{Dir: dir})
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := l.Read(access.LogQuery{}, func(access.Entry) bool { return true }); !errors.Is(err, access.ErrUnreadable) {
		t.Errorf("a log that is gone is read as if it were empty: %v", err)
	}
	if err := l.Ready(t.Context()); !errors.Is(err, place.ErrMoved) {
		t.Errorf("ready, without its folder, before the first line: %v", err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	record := func(name string) error {
		return l.Record(t.Context(), access.Entry{Event: access.EventWrite, Outcome: access.Done, Name: name})
	}
	if err := record("first"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := l.Ready(t.Context()); !errors.Is(err, access.ErrAudit) || !errors.Is(err, place.ErrMoved) {
		t.Errorf("ready, without its folder: %v", err)
	}
	if err := record("lost"); !errors.Is(err, access.ErrAudit) || !errors.Is(err, place.ErrMoved) {
		t.Errorf("recorded where nobody finds it: %v", err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if err := l.Ready(t.Context()); err != nil {
		t.Errorf("its folder is back: %v", err)
	}
	if err := record("second"); err != nil {
		t.Error(err)
	}
	if all := contents(t, dir); !strings.Contains(all, `"second"`) || strings.Contains(all, `"lost"`) {
		t.Errorf("the log has %s", all)
	}
}

// TestLateLineBesideOthers checks that an outcome that could not be written is written before the next change, even if
// a concurrent one could be.
func TestLateLineBesideOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	l := openLog(t, access.LogConfig{Dir: dir})
	entry := func(name string) access.Entry {
		return access.Entry{Event: access.EventWrite, Outcome: access.Done, Name: name}
	}
	var marked []access.Entry
	for _, name := range []string{"late", "beside"} {
		e := entry(name)
		intent, err := l.Begin(e)
		if err != nil {
			t.Fatal(err)
		}
		e.Mark(intent)
		marked = append(marked, e)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := l.Record(t.Context(), marked[0]); !errors.Is(err, access.ErrAudit) {
		t.Fatalf("recorded where nobody finds it: %v", err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if err := l.Record(t.Context(), marked[1]); err != nil {
		t.Fatal(err)
	}
	if err := l.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for _, e := range entriesOf(t, l, access.LogQuery{}) {
		names[e.Name]++
	}
	if names["late"] != 1 || names["beside"] != 1 {
		t.Errorf("the log tells of %v", names)
	}
}

// TestIntentsOfAProcessThatWasKilled checks that only intents without an outcome are unknown after a restart, whether
// the file of intents or only the log has the outcomes.
func TestIntentsOfAProcessThatWasKilled(t *testing.T) {
	dir, after := t.TempDir(), t.TempDir()
	l := openLog(t, access.LogConfig{Dir: dir})
	intents := map[string]*access.Intent{}
	for _, name := range []string{"unfinished", "nothing", "denied", "done", "last"} {
		intent, err := l.Begin(access.Entry{Event: access.EventWrite, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		intents[name] = intent
	}
	l.End(intents["nothing"])
	for _, c := range []struct{ name, outcome string }{{"denied", access.Denied}, {"done", access.Done},
		{"last", access.Done}} {
		e := access.Entry{Event: access.EventWrite, Name: c.name, Outcome: c.outcome}
		e.Mark(intents[c.name])
		if err := l.Record(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(after, os.DirFS(dir)); err != nil { // as after a kill
		t.Fatal(err)
	}
	for range 2 {
		again := openLog(t, access.LogConfig{Dir: after})
		var unknown []string
		for _, e := range entriesOf(t, again, access.LogQuery{}) {
			if e.Outcome == access.Unknown {
				unknown = append(unknown, e.Name)
			}
		}
		if len(unknown) != 1 || unknown[0] != "unfinished" {
			t.Errorf("unknown after the restart: %v, want unfinished", unknown)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
