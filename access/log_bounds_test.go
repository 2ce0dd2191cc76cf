package access_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/causeway-mesh/causeway/access"
)

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
