package access_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/access"
)

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
