package zone_test

import (
	"bufio"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/explain"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

var update = flag.Bool("update", false, "record Envoy's answers anew")

// recordedPaths names the file that holds, for each path as a client writes it, the path that Envoy forwards, or the
// status with which it refuses.
const recordedPaths = "rbac/testdata/paths.txt"

// echoesTarget runs an application that answers with the target of the request line, byte for byte.
func echoesTarget(t *testing.T) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				line, _ := r.ReadString('\n')
				for header := line; strings.TrimSpace(header) != ""; {
					if header, err = r.ReadString('\n'); err != nil {
						return
					}
				}
				if fields := strings.Fields(line); len(fields) == 3 {
					fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(fields[1]), fields[1])
				}
			}()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().(*net.TCPAddr).Port
}

// rawGet writes a request line with the path unchanged, and reads the answer.
func rawGet(certificate *tls.Certificate, port int, path, extraHeaders string) (status int, body string, err error) {
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port),
		&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate}})
	if err != nil {
		return 0, "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: backend\r\n%sConnection: close\r\n\r\n", path, extraHeaders)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// h2Get sends the path unchanged over HTTP/2.
func h2Get(c *http.Client, port int, path string) (status int, body string, err error) {
	host := fmt.Sprintf("127.0.0.1:%d", port)
	req, err := http.NewRequest(http.MethodGet, "https://"+host+"/", nil)
	if err != nil {
		return 0, "", err
	}
	req.URL.Opaque = "//" + host + path
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// readPaths returns the recorded lines: the path, and the answer, a forwarded path or a status.
func readPaths(t *testing.T) (paths, answers []string) {
	t.Helper()
	raw, err := os.ReadFile(recordedPaths)
	must(t, err)
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		path, answer, _ := strings.Cut(line, " ")
		paths, answers = append(paths, path), append(answers, answer)
	}
	return paths, answers
}

// TestEnvoyNormalisesPaths: an inbound's Envoy still answers as recorded. zone/rbac tests its own normalisation against
// the same record. After -update, read the difference.
func TestEnvoyNormalisesPaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port := freePort(t)
	w.httpDataplane("backend", port, echoesTarget(t))
	w.apply(allowAlice)
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice := w.client("alice")
	eventually(t, "alice allowed", func() bool { return status(alice, port) == http.StatusOK })
	paths, answers := readPaths(t)
	if len(paths) < 80 {
		t.Fatalf("only %d paths", len(paths))
	}
	h2 := h2Client(w.certificate("alice"))
	defer h2.CloseIdleConnections()
	var record strings.Builder
	record.WriteString("// A path as a client writes it, and what a real Envoy forwards for it on an inbound, or the status that it answers.\n")
	for i, path := range paths {
		code, got, err := rawGet(w.certificate("alice"), port, path, "")
		must(t, err)
		if code != http.StatusOK {
			got = fmt.Sprint(code)
		}
		fmt.Fprintf(&record, "%s %s\n", path, got)
		if !*update && got != answers[i] {
			t.Errorf("%s: Envoy says %s, recorded is %s", path, got, answers[i])
		}
		if !strings.HasPrefix(path, "/") {
			continue // HTTP/2 cannot carry this path
		}
		code, again, err := h2Get(h2, port, path)
		must(t, err)
		if code != http.StatusOK {
			again = fmt.Sprint(code)
		}
		if again != got {
			t.Errorf("%s: %s over HTTP/2, %s over HTTP/1.1", path, again, got)
		}
	}
	if *update {
		must(t, os.WriteFile(recordedPaths, []byte(record.String()), 0o600))
	}
}

// disguises lists disguises of the denied path /admin. Those that only an application can recognise are in
// explain.Lookalikes.
var disguises = []string{
	"/admin", "/admin/", "/admin?x", "/admin?", "/admin/x", "/admin;x=1", "/admin;", "/admin%3bx", "/admin%3Bx",
	"/admin%23", "/admin;/x",
	"/a/../admin", "/./admin", "/.//admin", "/a/./../admin", "/../admin", "/../../admin", "/a/b/../../admin",
	"/admin/..//admin", "/admin/.",
	"/%61dmin", "/%61%64%6d%69%6e", "/%61%64%6D%69%6E", "/adm%69n", "/admi%6E", "/a/%2e%2e/admin", "/a/%2E%2E/admin",
	"/a/.%2e/admin", "/%2e/admin",
	"//admin", "///admin", "//admin//", `/\admin`, `\admin`, `/a\..\admin`, "/%2fadmin", "/%2Fadmin", "/%5cadmin",
	"/%5Cadmin",
	"/a%2f..%2fadmin", "/a/..%2fadmin", "/a/..%5cadmin", "/admin%2f", "/admin%2fx", "/admin%5c", "/admin#x",
	"/#/../admin", "/x/..;/admin", "/x/%2e%2e;/admin", "/x/.%2e;y/admin", `/x\..;\admin`, "/%2e;/admin", "/admin%00",
	"/%00/admin",
	"/admin/%2e", "/admin/%2e%2e/admin", "http://backend/admin", "http://other/admin?x", "https://backend//admin",
}

// TestDisguisesOfADeniedPath: only the lookalikes pass, with either form, over HTTP/1.1 and HTTP/2, and explain
// predicts what Envoy does for each.
func TestDisguisesOfADeniedPath(t *testing.T) {
	t.Parallel()
	if len(disguises) < 40 {
		t.Fatalf("%d disguises", len(disguises))
	}
	lookalikes := explain.Lookalikes("/admin")
	if got := strings.Join(lookalikes, " "); got != "/admin.1 /admin+ /app/admin" {
		t.Fatalf("lookalikes %s", got)
	}
	for _, form := range []rbac.Form{rbac.List, rbac.Compiled} {
		t.Run(string(form), func(t *testing.T) {
			w := newWorldOf(t, form)
			port := freePort(t)
			w.httpDataplane("backend", port, echoesTarget(t))
			w.apply(`{type: MeshTrafficPermission, mesh: default, name: all, spec: {targetRef: {kind: Dataplane, labels: {app: backend}}, default: {
  deny: [{path: {type: Prefix, value: /admin}}], allow: [{spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/"}}]}}}`)
			w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
			alice := w.client("alice")
			eventually(t, "alice allowed", func() bool { return status(alice, port) == http.StatusOK })
			for _, path := range disguises {
				if got := w.checkPath(port, path); got != http.StatusForbidden && got != http.StatusBadRequest {
					t.Errorf("%s got in: %d", path, got)
				}
			}
			for _, path := range lookalikes {
				if got := w.checkPath(port, path); got != http.StatusOK {
					t.Errorf("%s: %d; lint and docs say that no proxy can tell it", path, got)
				}
			}
		})
	}
}

// checkPath compares HTTP/1.1, HTTP/2 and explain, and returns the status.
func (w *world) checkPath(port int, path string) int {
	w.t.Helper()
	got, _, err := rawGet(w.certificate("alice"), port, path, "")
	must(w.t, err)
	if !strings.HasPrefix(path, "/") {
		return got // HTTP/2 and queries have no such form
	}
	h2 := h2Client(w.certificate("alice"))
	defer h2.CloseIdleConnections()
	over2, _, err := h2Get(h2, port, path)
	must(w.t, err)
	answer, err := explain.FromSnapshot(w.store.Snapshot(), explain.Options{}).Explain(explain.Query{
		To: "backend", From: "spiffe://default.zone-1.mesh.local/workload/alice", Path: path,
	})
	must(w.t, err)
	want := http.StatusForbidden
	switch {
	case answer.Policy == "envoy":
		want = http.StatusBadRequest
	case answer.Allowed():
		want = http.StatusOK
	}
	if got != want || over2 != want || answer.Protocol != string(matching.HTTP) {
		w.t.Errorf("%s: HTTP/1.1 %d, HTTP/2 %d, explain %s by %s", path, got, over2, answer.Verdict, answer.Policy)
	}
	return got
}
