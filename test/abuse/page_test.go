package abuse

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// aimed is a request at the page. Its target is sent as written.
type aimed struct{ method, target, host string }

// aimedAtThePage are requests for files, views, what is not there, and what only looks as if it belonged to the page.
var aimedAtThePage = []aimed{
	{"GET", "/ui/", ""}, {"HEAD", "/ui/", ""}, {"GET", "/ui", ""}, {"GET", "/ui?back=//evil.example/", ""},
	{"GET", "/ui/why?from=<img+src=x>", ""}, {"GET", "/ui/nowhere", ""}, {"GET", "/ui/why/more", ""},
	{"GET", "/ui/icon.svg", ""}, {"GET", "/ui/index.html", ""}, {"GET", "/ui/assets/gone-1.js", ""}, {"GET", "/ui/assets/", ""},
	{"GET", "/ui/../meshes", ""}, {"GET", "/ui/%2e%2e/meshes", ""}, {"GET", "/ui/..%2fmeshes", ""}, {"GET", "//evil.example/ui/", ""},
	{"GET", "/ui//evil.example/", ""}, {"GET", "/ui/\\evil.example", ""}, {"GET", "/ui;x/", ""}, {"GET", "/UI/", ""},
	{"GET", "/ui/<script>alert(1)</script>", ""}, {"GET", "/<script>alert(1)</script>", ""}, {"GET", "/ui/{long}", ""},
	{"POST", "/ui/", ""}, {"PUT", "/ui/why", ""}, {"OPTIONS", "/ui/", ""}, {"OPTIONS", "/meshes", ""}, {"TRACE", "/ui/", ""}, {"PATCH", "/meshes", ""},
	{"GET", "/ui/signin", ""}, {"GET", "/ui/signin.json", ""}, {"GET", "/ui/signin?code=stolen&state=stolen", ""}, {"POST", "/ui/signin.json", ""},
	{"GET", "/ui/", "evil.example"}, {"GET", "/ui/signin.json", "evil.example"}, {"GET", "/meshes", "evil.example"},
	{"GET", "/meshes", ""}, {"GET", "/nothing", ""}, {"GET", "/openapi.json", ""}, {"POST", "/_batch", ""},
}

// saidToBrowsers are headers that each answer has, whatever it is an answer to.
var saidToBrowsers = map[string]string{
	"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
	"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
}

// TestEveryAnswerTellsBrowsersWhatToDo checks each answer that a browser can cause: the page, its files, errors, unknown
// paths, and the API beside them. None may be framed, run what it says, be read by another site or lead anywhere else.
func TestEveryAnswerTellsBrowsersWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, s := range []*aServer{w.global, w.zone} {
		files := regexp.MustCompile(`/ui/assets/[^"]+`).FindAllString(askRaw(t, s, aimed{"GET", "/ui/", ""}).body, -1)
		all := aimedAtThePage
		for _, file := range files { // none where the program was built without the page
			all = append(all, aimed{"GET", file, ""}, aimed{"HEAD", file, ""})
		}
		for _, a := range all {
			checkForBrowsers(t, s, a, askRaw(t, s, a))
		}
	}
}

func checkForBrowsers(t *testing.T, s *aServer, a aimed, got rawAnswer) {
	t.Helper()
	wrong := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s: %s %.60s, host %q, %d: "+format, append([]any{s.name, a.method, a.target, a.host, got.status}, args...)...)
	}
	for name, want := range saidToBrowsers {
		if values := got.header.Values(name); len(values) != 1 || values[0] != want {
			wrong("%s: %q, want %q", name, values, want)
		}
	}
	policy := strings.Join(got.header.Values("Content-Security-Policy"), " and ")
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, want) {
			wrong("policy %q lacks %s", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, "data:") {
		wrong("policy %q lets in what is not the page's own", policy)
	}
	for name := range got.header {
		if strings.HasPrefix(name, "Access-Control-") || name == "Set-Cookie" {
			wrong("header %s", name)
		}
	}
	if to := got.header.Get("Location"); to != "" && (!strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.HasPrefix(to, "/\\")) {
		wrong("it leads to %q", to)
	}
	kind := got.header.Get("Content-Type")
	if strings.HasPrefix(kind, "text/html") && !strings.Contains(policy, "script-src 'self'; style-src 'self' 'nonce-") && got.status == http.StatusOK {
		wrong("a page of its own with policy %q", policy)
	}
	if strings.HasPrefix(kind, "text/html") && (strings.Contains(got.body, "<script>alert") || strings.Contains(got.body, "<img")) {
		wrong("the address is markup in the answer: %s", got.body)
	}
	if !strings.Contains(got.header.Get("Cache-Control"), "no-") && !strings.HasPrefix(a.target, "/ui/assets/") {
		wrong("it may be kept: %q", got.header.Get("Cache-Control"))
	}
}

type rawAnswer struct {
	status int
	header http.Header
	body   string
}

// askRaw sends a request whose target nothing cleans, on a connection of its own.
func askRaw(t *testing.T, s *aServer, a aimed) rawAnswer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), a.method, s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque = strings.NewReplacer("{long}", strings.Repeat("a", 9000), "<", "%3C", ">", "%3E").Replace(a.target)
	if strings.HasPrefix(req.URL.Opaque, "//") { // it would be taken for a host
		req.URL.Opaque = req.URL.Scheme + "://" + req.URL.Host + req.URL.Opaque
	}
	if a.host != "" {
		req.Host = a.host
	}
	client := &http.Client{Timeout: attemptTimeout, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: s.tls(),
		DialContext: (&net.Dialer{Timeout: time.Minute}).DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return rawAnswer{resp.StatusCode, resp.Header, string(body)}
}
