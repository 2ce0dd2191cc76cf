package programtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// testLinker is a linker of one set, named one, with the given tags.
func testLinker(t *testing.T, dir, tags string) linker {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	return linker{root: root, dir: dir, sets: map[string]set{
		"one": {packages: []string{"./server/programtest/testdata/program"}, tags: tags},
	}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func timeOf(t *testing.T, file string) time.Time {
	t.Helper()
	info, err := os.Stat(file)
	must(t, err)
	return info.ModTime()
}

// TestProgramKeepsItsTime checks that a program keeps its time while its content stays the same, and no longer.
func TestProgramKeepsItsTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := testLinker(t, dir, "")
	must(t, l.link(t.Context(), "one"))
	file, held := filepath.Join(dir, "one", "program"), filepath.Join(t.TempDir(), "held")
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	must(t, os.Chtimes(file, old, old))
	content, err := os.ReadFile(file)
	must(t, err)
	must(t, os.Link(file, held))

	must(t, l.link(t.Context(), "one"))
	if now := timeOf(t, file); !now.Equal(old) {
		t.Errorf("a program that is up to date has the time %v, want %v", now, old)
	}
	must(t, os.RemoveAll(filepath.Join(dir, made)))
	must(t, l.link(t.Context(), "one"))
	if now := timeOf(t, file); !now.Equal(old) {
		t.Errorf("a program that was linked anew, with the same content, has the time %v, want %v", now, old)
	}
	must(t, testLinker(t, dir, "other").link(t.Context(), "one"))
	if !timeOf(t, file).After(old) {
		t.Error("another program has the time of the one before")
	}
	if kept, err := os.ReadFile(held); err != nil || string(kept) != string(content) {
		t.Errorf("a link to the program before has %d bytes, %v, want %d", len(kept), err, len(content))
	}
}

// TestProgramsThatAreGone checks that a program that a set has no more does not stay, and neither do those of a module
// that is not there.
func TestProgramsThatAreGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := testLinker(t, dir, "")
	must(t, l.link(t.Context(), "one"))
	must(t, os.WriteFile(filepath.Join(dir, "one", "gone"), nil, 0o600))
	must(t, l.link(t.Context(), "one"))
	if there, err := os.ReadDir(filepath.Join(dir, "one")); err != nil || len(there) != 1 || there[0].Name() != "program" {
		t.Errorf("the set has %v, %v", there, err)
	}
	l.sets["one"] = set{packages: []string{"./program"}, module: "nowhere"}
	must(t, l.link(t.Context(), "one"))
	if there, err := os.ReadDir(filepath.Join(dir, "one")); !os.IsNotExist(err) {
		t.Errorf("without its module the set has %v, %v", there, err)
	}
}

// TestOnlyWhatIsLinkedBefore checks that a test gets no program that make has not linked, where make says that it has.
func TestOnlyWhatIsLinkedBefore(t *testing.T) {
	t.Setenv(Linked, "all")
	if dir, err := Build(t.Context(), "other"); err == nil || !strings.Contains(err.Error(), "no set of programs is named other") {
		t.Errorf("%s, %v", dir, err)
	}
	t.Chdir(t.TempDir())
	must(t, os.WriteFile("go.mod", nil, 0o600))
	for range 2 {
		if dir, err := Build(t.Context(), Release); err == nil || !strings.Contains(err.Error(), "before "+Linked+" is set") {
			t.Errorf("%s, %v", dir, err)
		}
		must(t, os.MkdirAll(filepath.Join(".run", "programs", Release), 0o700))
	}
}
