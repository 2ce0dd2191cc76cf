package resources

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestRespelledExpression checks that an expression for denied paths matches every spelling of a path, and no other
// path.
func TestRespelledExpression(t *testing.T) {
	for _, c := range []struct{ expression, path, want string }{
		{"/a:b", "/a:b /a%3ab /a%3Ab", "yes"},
		{"/a:b", "/a%3 /ab /a%253Ab /A:bc", "no"},
		{"/a:b", "/A:b /;x/a:b /;/%20A%3ab", "yes"},
		{"/a%3ab", "/a:b /a%3Ab", "yes"},
		{"/[:x]+y", "/:%3ax%3Ay /y%", "yes no"},
		{"/(?:a|%24)x{2}", "/$xx /%24xx", "yes"},
		{"(?i)/A:b", "/a%3aB /A:B", "yes"},
		{"/caf%C3%A9", "/caf%c3%a9 /caf%C3%a9", "yes"},
		{".*", "/ /%3a/x", "yes"},
		{"/[^/]+/x", "/a:%3b/x", "yes"},
		{"/.x", "/%40x /@x /ax", "yes"},
		{"/.x", "/%41x", "no"},
	} {
		re, err := DeniedPathExpression(c.expression)
		if err != nil {
			t.Fatal(err)
		}
		wants := strings.Fields(c.want)
		for i, path := range strings.Fields(c.path) {
			got := regexp.MustCompile(`\A(?:` + re + `)\z`).MatchString(path)
			if want := wants[min(i, len(wants)-1)] == "yes"; got != want {
				t.Errorf("%s on %s: %v (as %s)", c.expression, path, got, re)
			}
		}
	}
}

// FuzzPathExpression checks that accepted expressions compile, and that a deny matches everything that an allow with
// the same expression matches.
func FuzzPathExpression(f *testing.F) {
	for _, seed := range []string{"/a", "/a:b", "^/a.*$", "/[^x]{1,3}", `/\w+\b`, "(?i)/A%3a", "/a|b?", "(",
		"/x{1000}", "[?]"} {
		f.Add(seed, "/a:b")
	}
	f.Fuzz(func(t *testing.T, expression, path string) {
		allowed, err := PathExpression(expression)
		denied, errDenied := DeniedPathExpression(expression)
		if err != nil || errDenied != nil {
			return
		}
		a, err := regexp.Compile(fmt.Sprintf(`\A(?:%s)\z`, allowed))
		if err != nil {
			t.Fatalf("%q became %q: %v", expression, allowed, err)
		}
		d, err := regexp.Compile(fmt.Sprintf(`\A(?:%s)\z`, denied))
		if err != nil {
			t.Fatalf("%q became %q: %v", expression, denied, err)
		}
		if a.MatchString(path) && !d.MatchString(path) {
			t.Fatalf("%q is allowed by %q and not denied by %q", path, allowed, denied)
		}
	})
}
