package pages

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const root = "../.."

// TestInstallPagesAreRun checks that each page of docs/install with commands has an existing test that reads the page,
// and that its commands are in a form that Read finds.
func TestInstallPagesAreRun(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(root, "docs", "install", "*.md"))
	if err != nil || len(found) < 6 {
		t.Fatalf("found the pages %q, %v", found, err)
	}
	runners := Install()
	for _, file := range found {
		page := "docs/install/" + filepath.Base(file)
		commands, err := Read(root, page, "")
		if err != nil {
			t.Error(err)
			continue
		}
		runner, there := runners[page]
		if there != (len(commands) > 0) {
			t.Errorf("%s has %d commands, and they are run by %q", page, len(commands), runner.Test)
		}
		delete(runners, page)
		if there && !isThere(t, runner, page) {
			t.Errorf("%s: no file in %s has %s and reads the page", page, runner.Package, runner.Test)
		}
	}
	for page := range runners {
		t.Errorf("there is no page %s", page)
	}
}

// isThere looks for the test in a file that names the page.
func isThere(t *testing.T, runner Runner, page string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, runner.Package, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(raw); strings.Contains(text, "func "+runner.Test+"(t *testing.T)") &&
			strings.Contains(text, `"`+page+`"`) {
			return true
		}
	}
	return false
}

func TestParse(t *testing.T) {
	page := "# A\n```console\n$ one \\\n    --two\nout\n\nmore\n$ three &\n```\n\n## B\n\n```yaml\na: $ b\n```\n```console\n$ four\n```\n### C\n```console\n$ five\n```\n## D\n    no block\n"
	all := []Command{{3, "one --two", []string{"out", "", "more"}}, {8, "three &", nil}, {17, "four", nil},
		{21, "five", nil}}
	for section, want := range map[string][]Command{"": all, "## B": all[2:], "### C": all[3:], "## D": nil} {
		if got, err := parse(page, section); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("section %q: %v, %v; want %v", section, got, err, want)
		}
	}
	for wrong, want := range map[string]string{
		"a\n\n    make\n":          "line 3: an indented block",
		"```sh\nmake\n```\n":       `line 1: a block of the kind "sh"`,
		"```\nmake\n```\n":         `line 1: a block of the kind ""`,
		"```console\nmake\n```\n":  "line 2: output without a command",
		"```console\n$ make\n":     "does not end",
		"## B\n```sh\nmake\n```\n": `line 2: a block of the kind "sh"`,
	} {
		if got, err := parse(wrong, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %s", wrong, got, err, want)
		}
	}
	if _, err := parse("## B\n", "## A"); err == nil {
		t.Error("a section that is not there is none of nothing")
	}
}

func TestShows(t *testing.T) {
	replace := strings.NewReplacer("5681", "20001")
	got := "NAME   PORT\nmesh-abcdefgh23456789   20001\nlast 7s\n"
	for want, ok := range map[string]bool{
		"mesh-zzzzzzzz23456789 5681": true, "NAME PORT\nlast 12s": true, "last 1s\nNAME PORT": false,
		"mesh 5681": false, "last 7m": true, "last 1m12.5s": true, "last m": false, "last 7 s": false, "last 7": false,
	} {
		if err := Shows(strings.Split(want, "\n"), got, replace); (err == nil) != ok {
			t.Errorf("%q: %v", want, err)
		}
	}
}
