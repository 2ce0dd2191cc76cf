package zone_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMatchesAndFiltersOfRoutes shows each match and each filter of a MeshHTTPRoute in a real Envoy.
func TestMatchesAndFiltersOfRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler("backend", "backend", func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("X-Internal", "secret")
		out.Header().Set("X-From", "application")
		_, _ = fmt.Fprintf(out, "backend %s %s%s a=%s b=%q", r.Method, r.Host, r.URL.Path, r.Header.Get("X-A"), r.Header.Values("X-B"))
	})
	w.handler("canary", "canary", answers("canary"))
	var copies counter
	w.handler("mirror", "mirror", func(http.ResponseWriter, *http.Request) { copies.add() })
	w.allowAll()
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	eventually(t, "reachable", ok(ports[0], "/"))
	const canary = "default: {backendRefs: [{kind: MeshService, name: canary, port: 80}]}"
	filter := func(path, filters string) string {
		return fmt.Sprintf("{matches: [{path: {type: PathPrefix, value: %s}}], default: {filters: [%s]}}", path, filters)
	}
	w.apply(`{type: MeshHTTPRoute, mesh: default, name: all, spec: {to: [{targetRef: {kind: MeshService, name: backend}, rules: [` + strings.Join([]string{
		"{matches: [{path: {type: RegularExpression, value: '/r[0-9]+'}}], " + canary + "}",
		"{matches: [{path: {type: PathPrefix, value: /p}}, {path: {type: Exact, value: /e}}], " + canary + "}",
		"{matches: [{path: {type: Exact, value: /method}, method: POST}], " + canary + "}",
		"{matches: [{path: {type: Exact, value: /header}, headers: [{name: x-a, value: exact}, {name: x-b, type: Present}, {name: x-c, type: Absent}, {name: x-d, type: Prefix, value: pre}, {name: x-e, type: RegularExpression, value: 'e+'}]}], " + canary + "}",
		"{matches: [{path: {type: Exact, value: /query}, queryParams: [{name: a, type: Exact, value: '1'}, {name: b, type: RegularExpression, value: '[0-9]+'}]}], " + canary + "}",
		"{matches: [{path: {type: Exact, value: /none}}], default: {backendRefs: [{kind: MeshService, name: backend, port: 80, weight: 0}, {kind: MeshService, name: canary, port: 80, weight: 7}]}}",
		filter("/req", "{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-a, value: set}], add: [{name: x-b, value: two}], remove: [x-c]}}"),
		filter("/resp", "{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-from, value: proxy}], add: [{name: x-more, value: b}], remove: [x-internal]}}"),
		filter("/redirect", "{type: RequestRedirect, requestRedirect: {scheme: https, hostname: a.example, port: 8443, path: {type: ReplaceFullPath, replaceFullPath: /else}, statusCode: 307}}"),
		filter("/rewrite", "{type: URLRewrite, urlRewrite: {hostname: b.example, path: {type: ReplaceFullPath, replaceFullPath: /full}}}"),
		filter("/mirror", "{type: RequestMirror, requestMirror: {percentage: 100, backendRef: {kind: MeshService, name: mirror, port: 80}}}"),
		filter("/unmirrored", "{type: RequestMirror, requestMirror: {percentage: 0, backendRef: {kind: MeshService, name: mirror, port: 80}}}"),
	}, ",\n") + `]}]}}`)
	ask := func(method, path string, headers ...string) (answered, string) {
		req, err := http.NewRequest(method, fmt.Sprintf("http://127.0.0.1:%d%s", ports[0], path), nil)
		must(t, err)
		for i := 0; i+1 < len(headers); i += 2 {
			req.Header.Add(headers[i], headers[i+1])
		}
		client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := client.Do(req)
		if err != nil {
			return answered{}, err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return answered{status: resp.StatusCode, header: resp.Header}, string(body)
	}
	eventually(t, "the routes", func() bool { _, body := ask("GET", "/e"); return strings.HasPrefix(body, "canary") })
	all := []string{"x-a", "exact", "x-b", "", "x-d", "prefixed", "x-e", "ee"}
	for _, c := range []struct {
		method, path, to string
		headers          []string
	}{
		{"GET", "/r12", "canary", nil}, {"GET", "/r12x", "backend", nil}, {"GET", "/p/a", "canary", nil}, {"GET", "/pa", "backend", nil},
		{"GET", "/e", "canary", nil}, {"GET", "/e/", "backend", nil}, {"POST", "/method", "canary", nil}, {"GET", "/method", "backend", nil},
		{"GET", "/header", "canary", all}, {"GET", "/header", "backend", append(slices.Clone(all), "x-c", "a")},
		{"GET", "/header", "backend", all[2:]}, {"GET", "/header", "backend", all[:6]},
		{"GET", "/query?a=1&b=23", "canary", nil}, {"GET", "/query?a=1&b=x", "backend", nil}, {"GET", "/none", "canary", nil},
	} {
		if _, body := ask(c.method, c.path, c.headers...); !strings.HasPrefix(body, c.to) {
			t.Errorf("%s %s with %q goes to %.20q, want %s", c.method, c.path, c.headers, body, c.to)
		}
	}
	if _, body := ask("GET", "/req", "x-a", "old", "x-b", "one", "x-c", "c"); !strings.Contains(body, `a=set b=["one" "two"]`) {
		t.Errorf("headers of requests: %s", body)
	}
	if got, _ := ask("GET", "/resp"); got.header.Get("X-From") != "proxy" || got.header.Get("X-More") != "b" || got.header.Get("X-Internal") != "" {
		t.Errorf("headers of responses: %v", got.header)
	}
	if got, _ := ask("GET", "/redirect/a"); got.status != http.StatusTemporaryRedirect || got.header.Get("Location") != "https://a.example:8443/else" {
		t.Errorf("redirect: %d %s", got.status, got.header.Get("Location"))
	}
	if _, body := ask("GET", "/rewrite/a"); !strings.Contains(body, "GET b.example/full ") {
		t.Errorf("rewrite: %s", body)
	}
	if _, body := ask("GET", "/mirror"); !strings.HasPrefix(body, "backend") {
		t.Errorf("what is mirrored is answered by %s", body)
	}
	eventually(t, "a copy", func() bool { return copies.value() == 1 })
	for range 20 {
		ask("GET", "/unmirrored")
	}
	if n := copies.value(); n != 1 {
		t.Errorf("%d copies, want 1", n)
	}
	e.refusedNothing()
}

// TestHostOfTheBackend: with hostToBackendHostname, a service outside of the mesh sees its own name as the host; with
// hostname, the one of the MeshHTTPRoute.
func TestHostOfTheBackend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(out, r.Host) }))
	t.Cleanup(srv.Close)
	w.apply(fmt.Sprintf("{type: MeshExternalService, mesh: default, name: named, spec: {match: {port: 80, protocol: http}, endpoints: [{address: localhost, port: %d}]}}",
		srv.Listener.Addr().(*net.TCPAddr).Port))
	ports, e := w.caller("caller", "{kind: MeshExternalService, name: named}")
	for rewrite, want := range map[string]string{"hostname: b.example": "b.example", "hostToBackendHostname: true": "localhost"} {
		w.apply("{type: MeshHTTPRoute, mesh: default, name: host, spec: {to: [{targetRef: {kind: MeshExternalService, name: named}, rules: [{default: {filters: [{type: URLRewrite, urlRewrite: {" + rewrite + "}}]}}]}]}}")
		eventually(t, rewrite, func() bool { code, host := plain(ports[0], "/"); return code == http.StatusOK && host == want })
	}
	e.refusedNothing()
}
