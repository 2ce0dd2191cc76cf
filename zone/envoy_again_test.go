package zone_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

const fromTheCompany = `{type: MeshTrafficPermission, mesh: default, name: all, spec: {default: {
  deny: [{path: {type: Prefix, value: /admin}}], allow: [{spiffeId: {type: Prefix, value: "spiffe://company.example/%s"}}]}}}`

// believe lets a company's identities in, and those of the zone.
func (w *world) believe(company *testCA) {
	w.t.Helper()
	quoted, err := json.Marshal(company.pem())
	must(w.t, err)
	home := w.home.Zone
	w.home.Zone = "" // from the global: any trust domain
	w.apply(fmt.Sprintf(`{type: MeshTrust, mesh: default, name: company, spec: {trustDomain: company.example, caBundles: [{type: Pem, pem: {value: %s}}]}}`, quoted))
	w.home.Zone = home
}

// TestWhatIsUsedAgain: a connection over HTTP/2, and a TLS session, that were made when a client was allowed and
// believed let it do nothing afterwards that a new one would not.
func TestWhatIsUsedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, _ := application(t)
	port := freePort(t)
	company := newTestCA(t)
	w.believe(company)
	w.httpDataplane("backend", port, service)
	w.apply(fmt.Sprintf(fromTheCompany, ""))
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice := company.certificate("spiffe://company.example/alice")
	eventually(t, "alice allowed", func() bool { return status(httpClient(alice), port) == http.StatusOK })

	t.Run("a permission that is gone", func(t *testing.T) {
		ask := oneConnection(t, alice, port)
		if got := ask(); got != "200" {
			t.Fatal(got)
		}
		w.apply(fmt.Sprintf(fromTheCompany, "bob"))
		eventually(t, "alice denied on the connection that she has", func() bool { got := ask(); return got != "200" })
		w.apply(fmt.Sprintf(fromTheCompany, ""))
		eventually(t, "alice allowed on it", func() bool { return ask() == "200" })
	})
	t.Run("a session of a certificate that is over", func(t *testing.T) {
		template := company.template()
		template.NotAfter = time.Now().Add(4 * time.Second)
		brief := company.sign(template, "spiffe://company.example/brief")
		sessions := resuming(brief)
		for range 2 {
			if got, again := resumed(sessions, port); got != "200" || again {
				t.Errorf("a certificate that is good: %s, resumed: %v", got, again)
			}
		}
		eventually(t, "its certificate to be over", func() bool { return time.Now().After(template.NotAfter) })
		if got, again := resumed(sessions, port); got == "200" {
			t.Errorf("a certificate that is over: %s, resumed: %v", got, again)
		}
	})
	t.Run("an authority that is gone", func(t *testing.T) {
		ask, sessions := oneConnection(t, alice, port), resuming(alice)
		if got, _ := resumed(sessions, port); got != "200" || ask() != "200" {
			t.Fatal(got)
		}
		w.remove(resources.TypeMeshTrust, "company")
		eventually(t, "no new connection", func() bool { return status(httpClient(alice), port) != http.StatusOK })
		if got, again := resumed(sessions, port); got == "200" {
			t.Errorf("the session of an authority that is gone: %s, resumed: %v", got, again)
		}
		// A connection that was verified when it was made lasts; what ends it is what it may do.
		w.apply(fmt.Sprintf(fromTheCompany, "bob"))
		eventually(t, "alice denied on the connection that she has", func() bool { return ask() != "200" })
	})
}

// oneConnection returns a function that asks over one connection and returns the status, or how the connection ended.
func oneConnection(t *testing.T, certificate *tls.Certificate, port int) func() string {
	t.Helper()
	var dialled atomic.Bool
	transport := &http.Transport{ForceAttemptHTTP2: true,
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			if dialled.Swap(true) {
				return nil, errors.New("the one connection has ended")
			}
			return rawDial(t, certificate, port, "h2"), nil
		}}
	t.Cleanup(transport.CloseIdleConnections)
	return func() string {
		req, err := http.NewRequest(http.MethodGet, "https://backend/hello", nil)
		must(t, err)
		return outcome(transport.RoundTrip(req))
	}
}

func outcome(resp *http.Response, err error) string {
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return fmt.Sprint(resp.StatusCode)
}

// resuming is a client that keeps sessions.
func resuming(certificate *tls.Certificate) *tls.Config {
	return &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate}, NextProtos: []string{"http/1.1"},
		ServerName: "backend", ClientSessionCache: tls.NewLRUClientSessionCache(8),
	}
}

// resumed asks over a new connection and reports whether its session was an old one.
func resumed(config *tls.Config, port int) (got string, again bool) {
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), config)
	if err != nil {
		return err.Error(), false
	}
	defer conn.Close()
	return askRaw(conn), conn.ConnectionState().DidResume
}

// TestServerNamesOfClients: what server name a client asks an inbound for decides nothing.
func TestServerNamesOfClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, _ := application(t)
	port := freePort(t)
	company := newTestCA(t)
	w.believe(company)
	w.httpDataplane("backend", port, service)
	w.apply(fmt.Sprintf(fromTheCompany, "alice"))
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice, bob := company.certificate("spiffe://company.example/alice"),
		company.certificate("spiffe://company.example/bob")
	eventually(t, "alice allowed", func() bool { return status(httpClient(alice), port) == http.StatusOK })
	as := func(certificate *tls.Certificate, name, path string) string {
		conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{
			InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate}, ServerName: name,
		})
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: backend\r\n\r\n", path)
		return readStatus(conn)
	}
	for _, name := range []string{
		"", "backend", "BACKEND", "alice", "company.example", "spiffe.company.example",
		"other.default.svc.cluster.local", "127.0.0.1", "admin", strings.Repeat("a.", 120) + "a", "backend.",
	} {
		for who, want := range map[*tls.Certificate][2]string{alice: {"200", "403"}, bob: {"403", "403"}} {
			for i, path := range []string{"/hello", "/admin"} {
				if got := as(who, name, path); got != want[i] {
					t.Errorf("%q, %s: %s, want %s", name, path, got, want[i])
				}
			}
		}
	}
}

func askRaw(conn *tls.Conn) string {
	_, _ = io.WriteString(conn, "GET /hello HTTP/1.1\r\nHost: backend\r\n\r\n")
	return readStatus(conn)
}

// readStatus returns the status of the answer that comes, or why there is none.
func readStatus(conn *tls.Conn) string {
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	return outcome(http.ReadResponse(bufio.NewReader(conn), nil))
}
