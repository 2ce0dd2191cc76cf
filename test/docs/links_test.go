package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

var (
	fences     = regexp.MustCompile("(?ms)^```.*?^```[ \t]*$")
	codeSpans  = regexp.MustCompile("`[^`\n]*`")
	links      = regexp.MustCompile(`\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)?)\)`)
	headings   = regexp.MustCompile(`(?m)^#{1,6} +(.+?)[ \t]*#*$`)
	headLinks  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInSlugs = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchorsOf returns the anchors that code hosts derive from a page's headings: lower case, no punctuation, a number
// after the second of two equal ones.
func anchorsOf(page string) map[string]bool {
	out, seen := map[string]bool{}, map[string]int{}
	for _, m := range headings.FindAllStringSubmatch(fences.ReplaceAllString(page, ""), -1) {
		text := strings.ToLower(headLinks.ReplaceAllString(m[1], "$1"))
		slug := strings.ReplaceAll(notInSlugs.ReplaceAllString(text, ""), " ", "-")
		if n := seen[slug]; n > 0 {
			out[fmt.Sprintf("%s-%d", slug, n)] = true
		} else {
			out[slug] = true
		}
		seen[slug]++
	}
	return out
}

// TestLinks checks that every relative link of every Markdown file leads to an existing file or folder of the
// repository, and, if the link names a heading, to an existing heading.
func TestLinks(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-co", "--exclude-standard", "*.md")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, name := range strings.Fields(string(out)) {
		raw, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range brokenLinks(root, name, string(raw), &checked) {
			t.Errorf("%s: %s", name, problem)
		}
	}
	if checked < 50 {
		t.Errorf("only %d links were looked at: does this test still read them rightly?", checked)
	}
}

// TestSymbolicLinks checks that every symbolic link in the repository leads to something in it, wherever that is.
func TestSymbolicLinks(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	list := exec.CommandContext(t.Context(), "git", "ls-files", "--stage", "-z")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for file := range strings.SplitSeq(string(out), "\x00") {
		about, name, _ := strings.Cut(file, "\t")
		if !strings.HasPrefix(about, "120000 ") {
			continue
		}
		checked++
		to, err := os.Readlink(filepath.Join(root, name))
		if err != nil {
			t.Error(err)
			continue
		}
		target := filepath.Join(filepath.Dir(name), to)
		if _, err := os.Stat(filepath.Join(root, target)); filepath.IsAbs(to) || !filepath.IsLocal(target) || err != nil {
			t.Errorf("%s leads to %s, which the repository does not have", name, to)
		}
	}
	if checked == 0 {
		t.Error("no symbolic link was found: does this test still read them rightly?")
	}
}

func brokenLinks(root, name, page string, checked *int) (problems []string) {
	text := codeSpans.ReplaceAllString(fences.ReplaceAllString(page, ""), "`")
	for _, m := range links.FindAllStringSubmatch(text, -1) {
		target, anchor, _ := strings.Cut(m[1], "#")
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		*checked++
		path := filepath.Join(root, name)
		if target != "" {
			path = filepath.Join(root, filepath.Dir(name), target)
		}
		if _, err := os.Stat(path); err != nil {
			problems = append(problems, m[1]+" leads nowhere")
			continue
		}
		if anchor == "" {
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil || !anchorsOf(string(raw))[anchor] {
			problems = append(problems, m[1]+": there is no such heading")
		}
	}
	return problems
}

// TestBrokenLinksAreFound checks that TestLinks finds broken links.
func TestBrokenLinksAreFound(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	page := "# Why 403?\n## `GET /a_b`\n## Twice\n## Twice\n[a](#why-403) [b](#get-a_b) [c](#twice-1) [`code`](go.mod) `[no](link)`\n```\n[no](link)\n```\n"
	checked := 0
	if brokenLinks(root, "README.md", page, &checked); checked != 4 {
		t.Errorf("%d links looked at, want 4: those in code are none", checked)
	}
	anchors := anchorsOf(page)
	for _, want := range []string{"why-403", "get-a_b", "twice", "twice-1"} {
		if !anchors[want] {
			t.Errorf("no anchor %s in %v", want, anchors)
		}
	}
	broken := brokenLinks(root, "docs/x.md", "[a](nowhere.md) [b](../README.md#nothing) [c](../README.md#start) [d](https://example.com/nowhere)", &checked)
	if len(broken) != 2 {
		t.Errorf("found %v, want nowhere.md and #nothing", broken)
	}
}
