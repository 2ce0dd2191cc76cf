package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

// page returns a minimal build of the page.
func page(t *testing.T) *Page {
	t.Helper()
	html := []byte(`<meta property="csp-nonce" nonce="{{nonce}}" /><script src="/ui/assets/a-1.js"></script>`)
	script := []byte(strings.Repeat("let a = 1;\n", 500))
	p, err := read(fstest.MapFS{index: {Data: html}, "assets/a-1.js": {Data: script}, "icon.svg": {Data: []byte("<svg/>")}}, html)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func get(t *testing.T, p *Page, method, target string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r io.Reader) string {
	t.Helper()
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestPage(t *testing.T) {
	for _, c := range []struct {
		name, method, target string
		status               int
		header, is           string
	}{
		{"the first view", "GET", "/ui/", 200, "Cache-Control", "no-store"},
		{"a view by its URL", "GET", "/ui/why?from=a.b", 200, "Content-Type", "text/html; charset=utf-8"},
		{"without the slash", "GET", "/ui", 308, "Location", "/ui/"},
		{"a file that is named by its content", "GET", "/ui/assets/a-1.js", 200, "Cache-Control", "public, max-age=31536000, immutable"},
		{"a file with a name of its own", "GET", "/ui/icon.svg", 200, "Cache-Control", "no-cache"},
		{"a file of an older version", "GET", "/ui/assets/a-0.js", 404, "Cache-Control", ""},
		{"a file outside", "GET", "/ui/../web.go", 404, "", ""},
		{"a view below a view", "GET", "/ui/why/more", 404, "", ""},
		{"the source of index", "GET", "/ui/index.html", 404, "", ""},
		{"a write", "POST", "/ui/", 405, "Allow", "GET, HEAD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := get(t, page(t), c.method, c.target)
			if got.StatusCode != c.status || c.header != "" && got.Header.Get(c.header) != c.is {
				t.Errorf("%s %s: %d, %s %q; want %d, %q", c.method, c.target, got.StatusCode, c.header, got.Header.Get(c.header), c.status, c.is)
			}
		})
	}
}

// A predictable nonce protects nothing.
func TestNonceIsNewEachTime(t *testing.T) {
	p, seen := page(t), map[string]bool{}
	for range 10 {
		got := get(t, p, "GET", "/ui/")
		policy := got.Header.Get("Content-Security-Policy")
		_, rest, _ := strings.Cut(policy, "'nonce-")
		nonce, _, _ := strings.Cut(rest, "'")
		if nonce == "" || seen[nonce] || !strings.Contains(body(t, got.Body), `nonce="`+nonce+`"`) {
			t.Fatalf("policy %q has no new nonce that is also in the page", policy)
		}
		seen[nonce] = true
		if strings.Contains(policy, "unsafe") || !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") {
			t.Errorf("policy %q lets in more than the page's own files", policy)
		}
		if !strings.Contains(policy, "; require-trusted-types-for 'script'; trusted-types 'none'") {
			t.Errorf("policy %q lets a text become markup", policy)
		}
	}
}

func TestCompression(t *testing.T) {
	for accept, zipped := range map[string]bool{
		"gzip": true, "br, gzip;q=0.5": true, "gzip;q=1.0": true, "": false, "br": false, "gzip;q=0": false, "gzip; q=0.0": false,
	} {
		got := get(t, page(t), "GET", "/ui/assets/a-1.js", "Accept-Encoding", accept)
		if (got.Header.Get("Content-Encoding") == "gzip") != zipped {
			t.Errorf("Accept-Encoding %q: Content-Encoding %q", accept, got.Header.Get("Content-Encoding"))
		}
		if !zipped {
			continue
		}
		plain, err := gzip.NewReader(got.Body)
		if err != nil || !strings.HasPrefix(body(t, plain), "let a = 1;") {
			t.Errorf("Accept-Encoding %q: not the file as gzip: %v", accept, err)
		}
	}
}

// A program without the page serves instructions to build it.
func TestPageOfThisProgram(t *testing.T) {
	p := New()
	got := get(t, p, "GET", "/ui/")
	if text := body(t, got.Body); got.StatusCode != http.StatusOK || p.Built() == strings.Contains(text, "make build") {
		t.Errorf("built %t, and the page is %q", p.Built(), text)
	}
}

// Only the view in which a sign-in ends may call another origin, and only one that cannot end the directive.
func TestPolicyOfSignIn(t *testing.T) {
	for endpoint, connect := range map[string]string{
		"https://idp.example:8443/token": "connect-src 'self' https://idp.example:8443;", "https://[2001:db8::1]/t": "connect-src 'self' https://[2001:db8::1];",
		"": "connect-src 'self';", "http://idp.example/token": "connect-src 'self';", "https://idp.example;script-src/*/x": "connect-src 'self';",
		"https://*/token": "connect-src 'self';", "https://a b/": "connect-src 'self';",
	} {
		w := httptest.NewRecorder()
		page(t).ServeSignIn(w, httptest.NewRequest(http.MethodGet, "/ui/signin", nil), endpoint)
		if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "; "+connect) || strings.Count(policy, "script-src") != 1 {
			t.Errorf("%q: policy %q, want %s", endpoint, policy, connect)
		}
	}
}
