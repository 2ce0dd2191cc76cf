package purity

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestProgramsAreInputs checks that tests look at the programs that TestMain builds: the go command does not learn of what
// TestMain looks at, and would take the result of a test for one that holds when a program has changed.
func TestProgramsAreInputs(t *testing.T) {
	t.Parallel()
	found := 0
	eachTestFile(t, func(file, text string) {
		_, main, _ := strings.Cut(text, "\nfunc TestMain(")
		builds := strings.Contains(main, "cluster.Build(") || strings.Contains(main, "programtest.Program(")
		if !builds || uncached.MatchString(file) {
			return
		}
		if found++; !strings.Contains(text, "programtest.Look(") {
			t.Errorf("%s: what TestMain builds is no input of a test's result: call programtest.Look where a test uses it", file)
		}
	})
	if found < 4 {
		t.Errorf("only %d files build programs in TestMain", found)
	}
}

// unseen matches what reads the repository in a process of its own, unseen by the go command.
var unseen = regexp.MustCompile(`exec\.Command(Context)?\([^)"]*"(go|git|make|\.[^"]*)"`)

// uncached are folders whose tests run each time, and files of others whose tests have flags with which they do.
var uncached = regexp.MustCompile(`^test/(docs|gate|pages|purity)/|^test/deploy/release_|^test/e2e/faults_versions_test.go$`)

// TestProcessesReadNothingUnseen checks that no test whose result the go command keeps runs the go command, git or a
// script of the repository.
func TestProcessesReadNothingUnseen(t *testing.T) {
	t.Parallel()
	found := 0
	eachTestFile(t, func(file, text string) {
		run := unseen.FindString(text)
		switch {
		case run == "":
		case uncached.MatchString(file):
			found++
		default:
			t.Errorf("%s has %s: move the test into a folder of OF_SOURCES in the Makefile", file, run)
		}
	})
	if found < 2 {
		t.Errorf("only %d files were found that run the go command, git or scripts", found)
	}
}

// TestBinariesAreNoInputs checks that no test starts its own binary by its name. It is in the repository and has the time
// of each run, so the go command would never keep the result.
func TestBinariesAreNoInputs(t *testing.T) {
	t.Parallel()
	eachTestFile(t, func(file, text string) {
		if ownBinary.MatchString(text) && !uncached.MatchString(file) {
			t.Errorf("%s starts the test's binary by its name: start /proc/self/exe", file)
		}
	})
}

// ownBinary matches what starts the test's binary by its name.
var ownBinary = regexp.MustCompile(`exec\.Command(Context)?\([^)"]*os\.Args\[0\]|os\.Executable\(\)`)

// eachTestFile calls a function with each file of tests.
func eachTestFile(t *testing.T, do func(file, text string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != root || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		raw, err := os.ReadFile(path)
		file, outside := filepath.Rel(root, path)
		do(filepath.ToSlash(file), string(raw))
		return errors.Join(err, outside)
	})
	if err != nil {
		t.Fatal(err)
	}
}
