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

	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

var disguisesSent = flag.Int("disguises", 6_000, "requests that the disguise test generates; 100000 is the long form")

const (
	deniedFolder = "/api/admin"
	openFolder   = "/public"
)

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
