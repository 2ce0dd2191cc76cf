package abuse

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// fronts are the proxies in front of a server. Each port of their configurations forwards to the server's API.
var fronts = []struct {
	config string
	// command holds the program and its arguments before the configuration file.
	command []string
}{
	{"haproxy.cfg", []string{"haproxy", "-db", "-f"}},
	{"nginx.conf", []string{"nginx", "-e", "stderr", "-c"}},
	{"envoy.yaml", []string{"envoy", "--use-dynamic-base-id", "--concurrency", "1", "--log-level", "warning", "-c"}},
}

// startFronts runs the proxies until the test ends, and returns the addresses of the ports by name.
func startFronts(t *testing.T, api string) map[string]string {
	t.Helper()
	host, port, err := net.SplitHostPort(api)
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string]string{}
	for _, front := range fronts {
		dir := t.TempDir()
		values := map[string]string{"api": api, "host": host, "port": port, "dir": dir}
		text := regexp.MustCompile(`\{[a-z0-9-]+\}`).ReplaceAllStringFunc(string(read(t,
			filepath.Join("testdata", "front", front.config))), func(name string) string {
			name = strings.Trim(name, "{}")
			if values[name] == "" {
				free, err := porttest.Free()
				if err != nil {
					t.Fatal(err)
				}
				values[name] = strconv.Itoa(free)
				addresses[name] = "127.0.0.1:" + values[name]
			}
			return values[name]
		})
		file := filepath.Join(dir, front.config)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		startFront(t, front.command[0], append(front.command[1:len(front.command):len(front.command)], file))
	}
	for name, address := range addresses {
		listening(t, name, address)
	}
	return addresses
}

func startFront(t *testing.T, program string, args []string) {
	t.Helper()
	path := os.Getenv(strings.ToUpper(program))
	if root, err := cluster.Root(); err != nil {
		t.Fatal(err)
	} else if path == "" {
		path = filepath.Join(root, ".tools", "bin", program)
	}
	if _, err := os.Stat(path); err != nil { // also tells the go command that this result holds for this program
		t.Fatalf("%s: %v: run make tools", program, err)
	}
	var log bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v: run make tools", program, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", program, log.Bytes())
		}
	})
}

func listening(t *testing.T, name, address string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("nothing listens for %s at %s", name, address)
		}
	}
}

// raw sends lines unchanged and returns the status of the answer, or 0 without one.
func raw(t *testing.T, address string, lines ...string) int {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(attemptTimeout))
	if _, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		return 0
	}
	return statusOf(conn)
}

// statusOf reads the status from the first line of an answer.
func statusOf(r io.Reader) int {
	begin := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(r, begin); err != nil {
		return 0
	}
	status, _ := strconv.Atoi(string(begin[len("HTTP/1.1 "):]))
	return status
}

// hidden are headers by which a client tries to hide the proxy's own header.
var hidden = map[string][]string{
	"nothing":                {},
	"an empty line first":    {"X-Forwarded-For:"},
	"empty lines":            {"X-Forwarded-For:", "X-Real-IP: ", "Via:", "Forwarded:"},
	"loopback":               {"X-Forwarded-For: 127.0.0.1", "X-Real-IP: 127.0.0.1"},
	"underscores":            {"X_Forwarded_For: 127.0.0.1"},
	"taken out by its name":  {"Connection: close, X-Forwarded-For, X-Real-IP, X-Forwarded-Proto, X-Envoy-External-Address"},
	"another header's lines": {"X-Forwarded-Host: localhost", "Cf-Connecting-Ip: 127.0.0.1"},
}

// TestThroughFronts sends requests of strangers through proxies on the server's machine that forward everything.
// Whatever a proxy adds, and whatever a client does to hide it, no stranger is admin. With a token, the caller is the
// token's user.
func TestThroughFronts(t *testing.T) {
	t.Parallel()
	zone := startZone(t)
	api := strings.TrimPrefix(zone.url, "http://")
	addresses := startFronts(t, api)
	token := "Authorization: Bearer " + issue(t, zone, "root", []string{"mesh-system:admin"}, time.Hour)
	if got := raw(t, api, "GET /zones HTTP/1.1", "Host: localhost"); got != http.StatusOK {
		t.Fatalf("without a proxy: %d", got)
	}
	for name, address := range addresses {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(name, "http2") && name != "haproxy-tohttp2" {
				overHTTP2(t, address, token)
				return
			}
			for how, lines := range hidden {
				request := append([]string{"GET /zones HTTP/1.1", "Host: localhost"}, lines...)
				if got := raw(t, address, request...); got < 400 || got == http.StatusNotFound {
					t.Errorf("%s: %d, want a refusal", how, got)
				}
			}
			want := http.StatusOK
			if strings.Contains(name, "preamble") || strings.Contains(name, "tohttp2") {
				want = 0 // anything other than HTTP/1 is refused
			}
			if got := raw(t, address, "GET /zones HTTP/1.1", "Host: localhost", token); want == http.StatusOK &&
				got != want || want == 0 && got < 400 {
				t.Errorf("with a token: %d", got)
			}
		})
	}
	t.Run("envoy over HTTP/2", func(t *testing.T) { overHTTP2(t, addresses["envoy"], token) })
}

// overHTTP2 sends :authority, which a proxy turns into Host.
func overHTTP2(t *testing.T, address, token string) {
	t.Helper()
	transport := &http.Transport{Protocols: &http.Protocols{}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	ask := func(header, value string) int {
		ctx, cancel := context.WithTimeout(t.Context(), attemptTimeout)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/zones", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "localhost"
		req.Header.Set(header, value)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := ask("X-Forwarded-For", ""); got != http.StatusUnauthorized {
		t.Errorf("%d, want 401", got)
	}
	if got := ask("Authorization", strings.TrimPrefix(token, "Authorization: ")); got != http.StatusOK {
		t.Errorf("with a token: %d", got)
	}
}
