package access_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/place"
)

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
