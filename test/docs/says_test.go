package main

import (
	"crypto/x509"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

var (
	// saysTable matches the head of a table whose first column quotes the output of a program.
	saysTable = regexp.MustCompile(`^\| (it|the log) says \|`)
	// saysInline matches a quotation in a sentence.
	saysInline = regexp.MustCompile("\\b(?:says|with) `([^`]+)`")
	inCode     = regexp.MustCompile("`([^`]+)`")
)

// shortest is the least number of characters that are looked up. Fewer would match anywhere.
const shortest = 8

// quotation is a page's quotation of a program.
type quotation struct {
	line int
	text string
}

// quotations finds the quotations: every row of a table of quotations has one, and nothing else in backquotes.
func quotations(t *testing.T, page string) []quotation {
	t.Helper()
	var all []quotation
	inTable := false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case saysTable.MatchString(line):
			inTable = true
			continue
		case !strings.HasPrefix(line, "|"):
			inTable = false
		}
		found := saysInline.FindAllStringSubmatch(line, -1)
		if inTable && !strings.HasPrefix(line, "| ---") {
			found = inCode.FindAllStringSubmatch(strings.Split(line, "|")[1], -1)
			if len(found) == 0 {
				t.Errorf("line %d: what it says is not quoted: %s", i+1, line)
			}
		}
		for _, m := range found {
			all = append(all, quotation{i + 1, m[1]})
		}
	}
	return all
}

// ofOthers returns texts of libraries, of the system and of Envoy that our programs pass on unchanged.
func ofOthers() []string {
	return []string{
		syscall.EADDRINUSE.Error(), syscall.ECONNREFUSED.Error(), syscall.EHOSTUNREACH.Error(),
		x509.UnknownAuthorityError{}.Error(),
		x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired}.Error(), "RBAC: access denied", // which TestREADME sees
	}
}

// said reports whether a text is among the literals. Each part between ... must be in one of them.
func said(text string, literals []string) bool {
	looked := 0
	for _, part := range strings.Split(text, "...") {
		part = strings.Trim(part, " ;,")
		if len(part) < shortest {
			continue
		}
		looked++
		found := false
		for _, literal := range literals {
			found = found || strings.Contains(literal, part)
		}
		if !found {
			return false
		}
	}
	return looked > 0
}

// TestTroubleshootingQuotes checks that the quotations in docs/operations/troubleshooting.md are literals in the
// sources of the programs.
func TestTroubleshootingQuotes(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "docs", "operations", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	literals := append(literalsOf(t, root), ofOthers()...)
	all := quotations(t, string(raw))
	if len(all) < 35 {
		t.Errorf("found only %d quotations: does this test still read the page rightly?", len(all))
	}
	for _, q := range all {
		if !said(q.text, literals) {
			t.Errorf("line %d: no program says %q", q.line, q.text)
		}
	}
	for text, want := range map[string]bool{"waiting for proxies ...": true, "waiting for the moon ...": false,
		"...": false, "of ... of": false} {
		if said(text, literals) != want {
			t.Errorf("%q is said: %v", text, !want)
		}
	}
}

// literalsOf returns the string literals in the sources of the programs, without their tests. Literals joined by +
// count as one.
func literalsOf(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	files := token.NewFileSet()
	for _, folder := range []string{"access", "api", "cmd", "enrolment", "global", "kds", "resources", "secrets",
		"credential", "server", "tokens", "zone"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if e, ok := n.(ast.Expr); ok {
					if text := textOf(e); text != "" {
						all = append(all, text)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// textOf returns the text of a literal or of a sum of literals. A value that is not a literal leaves a gap.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); e.Kind == token.STRING && err == nil {
			return text
		}
	case *ast.BinaryExpr:
		left, right := textOf(e.X), textOf(e.Y)
		if e.Op == token.ADD && left+right != "" {
			return left + "\x00" + right
		}
	}
	return ""
}
