package zone_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

var disguisesSent = flag.Int("disguises", 6_000, "requests that the disguise test generates; 100000 is the long form")

// spellings are known disguises, with {d} for the denied path, {1} and {2} for its two segments and {1'} for the first
// without its first letter. Each run sends them, and they are the rows of the table in docs/permissions.md.
var spellings = []string{
	"{d}", "{d}/", "{d}/x", "/{1};x/{2}", "/;x{d}", "/{1}/;/{2}", "/{1}%3b/{2}", "/{1}%3Bx/{2}", "{d};x", "{d}%3bx",
	"{d}%3fx", "{d}%23x", "/{1}//{2}",
	"/{1}/./{2}", "/x/..{d}", "/x/..;{d}", "/x/%2e%2e{d}", "/x/%2e%2e;{d}", "/x/%252e%252e{d}", `/{1}\{2}`,
	"/{1}%5c{2}", "/{1}%255c{2}",
	"/{1}%2f{2}", "/{1}%252f{2}", "/{1}%2%66{2}", "/x/%2e%2%65/{1}/{2}", "/{1}%c0%af{2}", "/x/%c0%ae%c0%ae{d}",
	"/{1}%u002f{2}", "/{1}%ef%bc%8f{2}", "/{1}%e2%88%95{2}",
	"{D}", "/%61{1'}/{2}", "/%2561{1'}/{2}", "/%c1%a1{1'}/{2}", "/%u0061{1'}/{2}", "/%ef%bd%81{1'}/{2}",
	"/ap%c4%b1/{2}", "/%ff{1}/{2}", "/%c2%ad{1}/{2}",
	"{d}%20", "{d}.", "/{1}%20/{2}", "/{1}./{2}", "/%20{1}/{2}", "{d}%09", "{d}%0a", "{d}%00", "{d}%2500", "{d}.json",
	"{d}::$DATA", "/{1}/%09{2}",
	"{d}?x", "/..{d}", "/x/../{1}/{2}?y", "{d};/../x", "/...{d}",
}

const (
	deniedFolder = "/api/admin"
	openFolder   = "/public"
)

func spelled(pattern, path string) string {
	first, second, _ := strings.Cut(path[1:], "/")
	return strings.NewReplacer("{d}", path, "{D}", strings.ToUpper(path), "{1'}", first[1:], "{1}", first, "{2}",
		second).Replace(pattern)
}

// pieces are inserted into a path between any two characters.
var pieces = []string{
	";x", ";", "%3b", "%3B=", "/", "//", "/./", "/x/../", "/x/..;/", "/%2e%2e/", "/%2e%2e;/", "..", "../", ".", "\\",
	"%5c", "%255c", "%2f", "%252f", "%25252f", "%2%66",
	"%c0%af", "%c0%ae", "%20", "%09", "%0a", "%00", "%2500", "%", "%u002e", "%u2215", "?x", "?", "%3f", "%253f", "%23",
	"+", "%ff", "%e9", "%80", "%c2%ad", "%e2%80%8b",
	"%ef%bc%8f", "%ef%bc%8e", "%ef%bc%9b", ".json", ":$", "::$DATA", "~1", "/;/", "/%20/", "/.%20/", "x", "%2525",
	"%c2%a0", "%e3%80%80", "/..%20/", "/%252e%252e/", "/.;/",
}

// disguised returns a path that differs from another by a few changes.
func disguised(r *rand.Rand, path string) string {
	for range 1 + r.IntN(3) {
		at := 1 + r.IntN(len(path))
		if r.IntN(2) == 0 {
			path = path[:at] + pieces[r.IntN(len(pieces))] + path[at:]
			continue
		}
		if at == len(path) {
			at--
		}
		path = path[:at] + rewrittenByte(r, path[at]) + path[at+1:]
	}
	return path
}

func rewrittenByte(r *rand.Rand, c byte) string {
	switch r.IntN(8) {
	case 0:
		return fmt.Sprintf("%%%02x", c)
	case 1:
		return fmt.Sprintf("%%25%02x", c)
	case 2:
		return strings.ToUpper(string(rune(c)))
	case 3:
		return fmt.Sprintf("%%u00%02x", c)
	case 4:
		return fmt.Sprintf("%%c%d%%%02x", c>>6&1, c&0x3f|0x80)
	case 5:
		if '!' <= c && c <= '~' {
			return percentEncoded(rune(c) + 0xfee0)
		}
	case 6:
		if c == 'i' {
			return "%c4%b1"
		}
		return fmt.Sprintf("%%25%%%02x%%%02x", fmt.Sprintf("%02x", c)[0], fmt.Sprintf("%02x", c)[1])
	}
	return string(rune(c))
}

func percentEncoded(r rune) string {
	var out strings.Builder
	for _, b := range []byte(string(r)) {
		fmt.Fprintf(&out, "%%%02x", b)
	}
	return out.String()
}

// judged is a client, the rule that applies to it, and what no reader may serve it.
type judged struct {
	name, rule, list string
	// leaks reports whether a request that Envoy forwards gives the client something that it must not have.
	leaks func(reader, string) bool
	base  []string
}

func judgedClients() []judged {
	beneath := func(r reader, target string) bool { return r.servesBeneath(target, deniedFolder) }
	exactly := func(r reader, target string) bool { return r.servesExactly(target, deniedFolder) }
	outside := func(r reader, target string) bool {
		return slices.ContainsFunc(r.read(target), func(p string) bool {
			return !strings.EqualFold(p, openFolder) && !strings.HasPrefix(strings.ToLower(p), openFolder+"/")
		})
	}
	denied := []string{deniedFolder, deniedFolder + "/x"}
	open := []string{openFolder + "/a/b", openFolder + "/../api/admin", openFolder, openFolder + "/api/admin"}
	return []judged{
		{"prefix", "{type: Prefix, value: /api/admin}", "deny", beneath, denied},
		{"exact", "{type: Exact, value: /api/admin}", "deny", exactly, denied[:1]},
		{"expression", "{type: RegularExpression, value: '/api/admin(/.*)?'}", "deny", beneath, denied},
		{"open", "{type: Prefix, value: /public}", "allow", outside, open},
		{"open-expression", "{type: RegularExpression, value: '/public/.*'}", "allow", outside, open},
		{"shadowed", "{type: Prefix, value: /public}", "allowWithShadowDeny", outside, open},
	}
}

func (j judged) requests(n int) []rawRequest {
	var out []rawRequest
	for _, base := range j.base {
		for _, s := range spellings {
			if strings.Count(base, "/") == 2 && base != openFolder {
				out = append(out, rawRequest{method: "GET", target: spelled(s, base)})
			}
		}
	}
	r := rand.New(rand.NewPCG(13, uint64(len(j.name))))
	for len(out) < n {
		out = append(out, rawRequest{method: "GET", target: disguised(r, j.base[r.IntN(len(j.base))])})
	}
	return out
}

// newDisguiseWorld runs an Envoy in which one rule applies to each client, and returns its port.
func newDisguiseWorld(t *testing.T, form rbac.Form, more string) (*world, int) {
	t.Helper()
	w := newWorldOf(t, form)
	port := freePort(t)
	w.httpDataplane("backend", port, keepsEchoing(t))
	lists := map[string]string{}
	for _, j := range judgedClients() {
		id := `spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/workload/` + j.name + `"}`
		lists[j.list] += "      - {" + id + ", path: " + j.rule + "}\n"
		if j.list == "deny" {
			lists["allow"] += "      - {" + id + "}\n"
		}
	}
	w.apply("type: MeshTrafficPermission\nmesh: default\nname: all\nspec:\n  targetRef: {kind: Dataplane, labels: {app: backend}}\n  default:\n    deny:\n" +
		lists["deny"] + "    allowWithShadowDeny:\n" + lists["allowWithShadowDeny"] + "    allow:\n" + lists["allow"] + more)
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	client := w.client("prefix")
	eventually(t, "a client is allowed", func() bool { return status(client, port) == http.StatusOK })
	return w, port
}

// TestNoReaderServesADeniedPath sends disguises of a denied path, and of paths beside an allowed one, through a real
// Envoy. A model of each kind of application reads the requests that Envoy forwards: none may serve the denied path, or
// a path outside the allowed one.
func TestNoReaderServesADeniedPath(t *testing.T) {
	t.Parallel()
	w, port := newDisguiseWorld(t, rbac.Auto, "")
	would, passed := map[string]int{}, map[string]int{}
	clients := judgedClients()
	for _, j := range clients {
		certificate := w.certificate(j.name)
		requests := j.requests(*disguisesSent / len(clients))
		var overHTTP1, overHTTP2 []rawRequest
		for i, q := range requests {
			// Envoy closes an HTTP/1.1 connection on which it refuses a request, so only some of those requests are
			// sent there.
			_, refused := rbac.NormalizePath(q.target)
			if i%8 > 0 || refused != "" && i%64 > 0 {
				overHTTP2 = append(overHTTP2, q)
			} else {
				overHTTP1 = append(overHTTP1, q)
			}
		}
		answers := append(oneByOne(t, certificate, port, overHTTP1), multiplexed(t, certificate, port, overHTTP2)...)
		for i, q := range slices.Concat(overHTTP1, overHTTP2) {
			for _, r := range readers {
				if j.leaks(r, q.target) {
					would[r.name]++
				}
			}
			checkAnswer(t, j, q, answers[i])
			if answers[i].status == http.StatusOK {
				passed[j.name]++
			}
		}
	}
	for _, r := range readers {
		if would[r.name] < 100 {
			t.Errorf("only %d requests would have deceived %s", would[r.name], r.name)
		}
	}
	for _, j := range clients {
		if passed[j.name] < 10 {
			t.Errorf("%s: only %d requests passed, so the test may be one of a broken inbound", j.name, passed[j.name])
		}
	}
	t.Logf("would have been served without rules: %v; passed: %v", would, passed)
}

func checkAnswer(t *testing.T, j judged, q rawRequest, a rawAnswer) {
	t.Helper()
	switch a.status {
	case http.StatusForbidden, http.StatusBadRequest:
	case http.StatusOK:
		for _, r := range readers {
			if j.leaks(r, a.target) {
				t.Errorf("%s %s %s: %s arrives as %s, and %s serves %q", j.list, j.name, j.rule, q.target, a.target,
					r.name, r.read(a.target))
			}
		}
	default:
		t.Errorf("%s: %s: status %d", j.name, q.target, a.status)
	}
	path, refused := rbac.NormalizePath(q.target)
	if a.status == http.StatusOK && (refused != "" || path != a.target) || a.status == http.StatusForbidden &&
		refused != "" {
		t.Errorf("%s: Envoy answers %d and passes on %q; NormalizePath says %q, %s", q.target, a.status, a.target,
			path, refused)
	}
}

const (
	permissionsPage = "../docs/permissions.md"
	tableFrom       = "<!-- readers: written by TestReadersTable -->\n"
	tableTo         = "<!-- end of readers -->\n"
)

// TestReadersTable: the table of docs/permissions.md shows which reader treats which spelling as a denied path.
func TestReadersTable(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("| written | taken for `/api/admin` by |\n| --- | --- |\n")
	for _, s := range spellings {
		target := spelled(s, deniedFolder)
		var names []string
		for _, r := range readers {
			if r.servesBeneath(target, deniedFolder) {
				names = append(names, r.name)
			}
		}
		who := strings.Join(names, ", ")
		if len(names) == len(readers) {
			who = "all"
		}
		fmt.Fprintf(&table, "| `%s` | %s |\n", target, who)
	}
	raw, err := os.ReadFile(permissionsPage)
	must(t, err)
	before, rest, ok := strings.Cut(string(raw), tableFrom)
	old, after, ok2 := strings.Cut(rest, tableTo)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", permissionsPage)
	}
	if *update {
		must(t, os.WriteFile(permissionsPage, []byte(before+tableFrom+table.String()+tableTo+after), 0o600))
	} else if old != table.String() {
		t.Errorf("%s differs (run with -update):\n%s", permissionsPage, table.String())
	}
}

// TestMethodsInDisguise: a method that is not registered, or not in capitals, is answered before any rule. If rules
// name methods, a request that asks to be treated as one with another method is denied. Each request has a twin that
// passes.
func TestMethodsInDisguise(t *testing.T) {
	t.Parallel()
	for _, form := range []rbac.Form{rbac.List, rbac.Compiled} {
		t.Run(string(form), func(t *testing.T) { methodsInDisguise(t, form) })
	}
}

func methodsInDisguise(t *testing.T, form rbac.Form) {
	w, port := newDisguiseWorld(t, form, `---
{type: MeshTrafficPermission, mesh: default, name: methods, spec: {targetRef: {kind: Dataplane, labels: {app: backend}}, default: {
  deny: [{method: DELETE}], allow: [{spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/workload/alice"}}]}}}`)
	certificate := w.certificate("alice")
	for _, send := range []func(*testing.T, []rawRequest) []rawAnswer{
		func(t *testing.T, q []rawRequest) []rawAnswer { return oneByOne(t, certificate, port, q) },
		func(t *testing.T, q []rawRequest) []rawAnswer { return multiplexed(t, certificate, port, q) },
	} {
		ask := func(q rawRequest) int { return send(t, []rawRequest{q})[0].status }
		for _, method := range []string{"delete", "Delete", "DELETe", "get", "DELETED", "DELETE2", "XDELETE", "PURGE",
			"GE", "FOO", "G-E-T", "GET'"} {
			if got := ask(rawRequest{method: method, target: "/x"}); got != http.StatusBadRequest {
				t.Errorf("%s: %d", method, got)
			}
		}
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "OPTIONS", "PROPFIND", "MKCOL", "REPORT"} {
			if got := ask(rawRequest{method: method, target: "/x", headers: "content-length: 0\r\n"}); got != http.StatusOK {
				t.Errorf("%s: %d", method, got)
			}
		}
		for _, q := range []rawRequest{
			{"DELETE", "/x", ""}, {"POST", "/x", "x-http-method-override: DELETE\r\n"},
			{"GET", "/x", "X-HTTP-Method: delete\r\n"},
			{"POST", "/x", "x-method-override: DELETE\r\n"}, {"POST", "/x", "x_http_method_override: DELETE\r\n"},
			{"POST", "/x", "x-http_method-override: DELETE\r\n"},
			{"POST", "/x?_method=DELETE", ""}, {"POST", "/x?a&%5fmethod=delete", ""}, {"POST", "/x?a;_%6Dethod=delete", ""},
			{"POST", "/x?.method=DELETE", ""}, {"POST", "/x?%20+_method=DELETE", ""}, {"POST", "/x?a&%2emethod%00[]=DELETE", ""},
		} {
			if got := ask(q); got != http.StatusForbidden {
				t.Errorf("%+v: %d", q, got)
			}
		}
		for _, name := range []string{"x.http.method.override", "x-http-method!override", "X_HTTP~Method", "x+method-override"} {
			if got := send(t, []rawRequest{{"POST", "/x", name + ": DELETE\r\n"}})[0]; got.status != http.StatusOK || got.steered != "" {
				t.Errorf("%s: %d, and the application was told %q", name, got.status, got.steered)
			}
		}
		for _, q := range []rawRequest{{"POST", "/x?method=DELETE&a_method=x", ""}, {"POST", "/x?x.method=DELETE", ""},
			{"POST", "/x", "x-method: DELETE\r\n"}, {"POST", "/_method=DELETE", ""}} {
			if got := ask(q); got != http.StatusOK {
				t.Errorf("%+v: %d", q, got)
			}
		}
	}
	if !resources.IsRegisteredMethod("DELETE") || resources.IsRegisteredMethod("delete") {
		t.Error("methods have case")
	}
}

// TestDeniedGetAsHead: a deny of GET is no deny that HEAD passes; an allow of GET is none of HEAD.
func TestDeniedGetAsHead(t *testing.T) {
	t.Parallel()
	for _, form := range []rbac.Form{rbac.List, rbac.Compiled} {
		w, port := newDisguiseWorld(t, form, `---
{type: MeshTrafficPermission, mesh: default, name: methods, spec: {targetRef: {kind: Dataplane, labels: {app: backend}}, default: {
  deny: [{method: GET, path: {type: Prefix, value: /denied}}], allow: [
    {spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/workload/alice"}, path: {type: Prefix, value: /denied}},
    {spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/workload/alice"}, method: GET}]}}}`)
		certificate := w.certificate("alice")
		for _, c := range []struct {
			method, path string
			want         int
		}{{"GET", "/denied", http.StatusForbidden}, {"HEAD", "/denied", http.StatusForbidden}, {"OPTIONS", "/denied", http.StatusOK},
			{"GET", "/open", http.StatusOK}, {"HEAD", "/open", http.StatusForbidden}} {
			if got := multiplexed(t, certificate, port, []rawRequest{{c.method, c.path, ""}})[0].status; got != c.want {
				t.Errorf("%s, %s %s: %d, want %d", form, c.method, c.path, got, c.want)
			}
		}
	}
}

// TestPathsOfHeaders: where a rule names a path, a request that asks to be taken for one of another path is denied,
// whatever rule it is; where none does, nobody minds.
func TestPathsOfHeaders(t *testing.T) {
	t.Parallel()
	for _, form := range []rbac.Form{rbac.List, rbac.Compiled} {
		w, port := newDisguiseWorld(t, form, `---
{type: MeshTrafficPermission, mesh: default, name: paths, spec: {targetRef: {kind: Dataplane, labels: {app: backend}}, default: {
  deny: [{path: {type: Prefix, value: /api/admin}}], allow: [{spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/workload/alice"}}]}}}`)
		certificate := w.certificate("alice")
		for protocol, send := range map[string]func([]rawRequest) []rawAnswer{
			"HTTP/1.1": func(q []rawRequest) []rawAnswer { return oneByOne(t, certificate, port, q) },
			"HTTP/2":   func(q []rawRequest) []rawAnswer { return multiplexed(t, certificate, port, q) },
		} {
			for headers, want := range map[string]int{
				"x-original-url: /api/admin\r\n":   http.StatusForbidden,
				"X-Original-URL: /api/admin/x\r\n": http.StatusForbidden, "x_original_url: /api/admin\r\n": http.StatusForbidden,
				"x-rewrite-url: /api/admin\r\n": http.StatusForbidden, "x-rewrite_url: /\r\n": http.StatusForbidden,
				"x-original-url: \r\n":               http.StatusForbidden,
				"x-original-url: /api/admin\xff\r\n": http.StatusForbidden,
				"SCRIPT_NAME: /x\r\n":                http.StatusForbidden, "script-name: /x\r\n": http.StatusForbidden,
				"X-Script-Name: /x\r\n": http.StatusForbidden, "x_script_name: /\r\n": http.StatusForbidden,
				"x.script.name: /x\r\n": http.StatusOK, "x-script: /x\r\n": http.StatusOK,
				"x-original: /api/admin\r\n": http.StatusOK, "": http.StatusOK, "destination: /api/admin\r\n": http.StatusOK,
				"x.original.url: /api/admin\r\n": http.StatusOK, "x-rewrite~url: /api/admin\r\n": http.StatusOK,
			} {
				if got := send([]rawRequest{{"GET", "/public", headers}})[0]; got.status != want || got.steered != "" {
					t.Errorf("%s, %s, %q: %d, want %d; the application was told %q", form, protocol, headers, got.status, want, got.steered)
				}
			}
			for method, want := range map[string]int{"COPY": http.StatusForbidden, "MOVE": http.StatusForbidden, "PUT": http.StatusOK} {
				headers := "Destination: https://backend/api/admin\r\ncontent-length: 0\r\n"
				if got := send([]rawRequest{{method, "/public", headers}})[0].status; got != want {
					t.Errorf("%s, %s, %s to a denied path: %d, want %d", form, protocol, method, got, want)
				}
			}
			if got := send([]rawRequest{{"MOVE", "/public", "content-length: 0\r\n"}})[0].status; got != http.StatusOK {
				t.Errorf("%s, %s, MOVE without a destination: %d", form, protocol, got)
			}
		}
	}
}

// TestWhatADenyOfAPathCosts shows what else a deny of a path denies, and what it does not affect.
func TestWhatADenyOfAPathCosts(t *testing.T) {
	t.Parallel()
	w, port := newDisguiseWorld(t, rbac.Auto, "")
	left := []string{
		"/", "/api", "/api/", "/api/administration", "/api/admin2", "/api/admin.1", "/api/admin-x", "/api/x/admin",
		"/admin", "/cars;color=red/4;doors=5", "/api/users;x/admin1",
		"/a%20b", "/100%25", "/caf%C3%A9", "/%E6%97%A5%E6%9C%AC%E8%AA%9E", "/kap%C4%B1", "/%EF%BC%AE%EF%BC%A8%EF%BC%AB",
		"/a%2Bb%40c", "/v1/things:batch", "/~user/x", "/%F0%9F%98%80",
		"/a..b/...c", "/.well-known/x", "/a%3Fb", "/x?q=/api/admin&y=%2525", "/e%CC%81",
	}
	also := []string{"/API/ADMIN", "/api/admin.html", "/x/%2541", "/x/50%", "/x/a~1", "/%C0%80", "/caf%E9/x", "/x/..%20/y"}
	for want, paths := range map[int][]string{http.StatusOK: left, http.StatusForbidden: also} {
		var requests []rawRequest
		for _, path := range paths {
			requests = append(requests, rawRequest{method: "GET", target: path})
		}
		for i, a := range multiplexed(t, w.certificate("prefix"), port, requests) {
			if a.status != want {
				t.Errorf("%s: %d, want %d", paths[i], a.status, want)
			}
		}
	}
}
