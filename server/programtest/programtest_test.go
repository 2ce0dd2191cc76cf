package programtest

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestProgramKeepsItsTime checks that a program keeps its time until it is linked anew.
func TestProgramKeepsItsTime(t *testing.T) {
	t.Parallel()
	build := func(flags ...string) string {
		t.Helper()
		dir, err := Build(t.Context(), "programtest", flags, "./server/programtest/testdata/program")
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, "program")
	}
	timeOf := func(file string) time.Time {
		t.Helper()
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	file := build()
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(file)) })
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	if build(); !timeOf(file).Equal(old) {
		t.Errorf("a program that is up to date has the time %v, want %v", timeOf(file), old)
	}
	if build("-ldflags=-s -w -X main.name=other"); !timeOf(file).After(old) {
		t.Error("a program that was linked anew has its old time")
	}
}
