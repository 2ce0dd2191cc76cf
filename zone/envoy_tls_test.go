package zone_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// agreed is what a handshake of a client with an inbound comes to.
func agreed(port int, certificate *tls.Certificate, offer *tls.Config) (tls.ConnectionState, error) {
	offer.InsecureSkipVerify, offer.Certificates = true, []tls.Certificate{*certificate}
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), offer)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	return conn.ConnectionState(), nil
}

// TestHandshakesByPolicy shows in a real Envoy the versions and ciphers of a MeshTLS, at both ends of a connection.
func TestHandshakesByPolicy(t *testing.T) {
	w := newWorld(t)
	w.handler("backend", "backend", answers("backend"))
	w.allowAll()
	ports, caller := w.caller("caller", "{kind: MeshService, name: backend}")
	eventually(t, "reachable", ok(ports[0], "/"))
	service, _ := application(t)
	port := freePort(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: direct, networking: {address: 127.0.0.1, inbound: [{name: main, port: %d, servicePort: %d, protocol: http}]}}`, port, service))
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "direct"})
	alice := w.certificate("alice")
	tries := func(offer *tls.Config, version uint16, cipher uint16) func() error {
		return func() error {
			got, err := agreed(port, alice, offer.Clone())
			if (err == nil) != (version != 0) || version != 0 && got.Version != version || cipher != 0 &&
				got.CipherSuite != cipher {
				return fmt.Errorf("version %x, cipher %x, %w; want %x, %x", got.Version, got.CipherSuite, err, version, cipher)
			}
			return nil
		}
	}
	old := &tls.Config{MaxVersion: tls.VersionTLS12}
	weak := &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}
	soon(t, tries(&tls.Config{}, tls.VersionTLS13, 0))
	soon(t, tries(old, tls.VersionTLS12, 0))
	for _, tt := range []struct {
		conf  string
		until func() error
	}{
		{`{tlsVersion: {min: TLS13}}`, tries(old, 0, 0)},
		{`{tlsVersion: {max: TLS12}}`, tries(&tls.Config{}, tls.VersionTLS12, 0)},
		{`{tlsVersion: {max: TLS12}, tlsCiphers: [ECDHE-ECDSA-AES256-GCM-SHA384]}`, tries(weak, 0, 0)},
		{`{tlsVersion: {max: TLS12}, tlsCiphers: [ECDHE-ECDSA-AES256-GCM-SHA384]}`,
			tries(old, tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384)},
	} {
		w.apply("{type: MeshTLS, mesh: default, name: p, spec: {rules: [{default: " + tt.conf + "}]}}")
		soon(t, tt.until)
	}
	const spoken = "cluster.msvc.*ssl.(versions.TLSv1.2|ciphers.ECDHE-ECDSA-AES256-GCM-SHA384)$|cluster.*ssl.(versions.TLSv1.2|ciphers.ECDHE-ECDSA-AES256-GCM-SHA384)$"
	eventually(t, "the caller offers the policy's version and cipher", func() bool {
		return ok(ports[0], "/")() && len(caller.stats(spoken)) == 2
	})
	w.remove(resources.TypeMeshTLS, "p")
	soon(t, tries(&tls.Config{}, tls.VersionTLS13, 0))
}

// inTheClear is the status of a request without TLS, 0 where there is no answer.
func inTheClear(port int, path string) int {
	client := &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
	if err != nil {
		return 0
	}
	req.Header.Set("X-Forwarded-Client-Cert", "URI=spiffe://default.zone-1.mesh.local/workload/alice")
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// getsThrough reports whether a TCP inbound lets a connection in the clear through to its application.
func getsThrough(port int) bool {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	_, _ = fmt.Fprint(conn, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && line != ""
}

// TestClientsInTheClear: a MeshTLS of the mode Permissive lets an inbound take clients without TLS, who are judged:
// they get in where everybody does, and no deny is evaded by dropping TLS. Clients with TLS keep their connections when
// the mode changes.
func TestClientsInTheClear(t *testing.T) {
	w := newWorld(t)
	service, _ := application(t)
	lateApplication, _ := speaksFirst(t)
	web, db, mail := freePort(t), freePort(t), freePort(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [
  {name: web, port: %d, servicePort: %d, protocol: http}, {name: db, port: %d, servicePort: %d, protocol: tcp},
  {name: mail, port: %d, servicePort: %d, protocol: tcp, tags: {causeway.io/server-first: "true"}}]}}`, web, service, db, service, mail, lateApplication))
	w.apply(allowAlice)
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice, certificate := w.client("alice"), w.certificate("alice")
	eventually(t, "alice allowed", func() bool { return status(alice, web) == http.StatusOK })
	expect := func(when string, code int, tcp bool) {
		t.Helper()
		eventually(t, when, func() bool {
			return inTheClear(web, "/x") == code && getsThrough(db) == tcp && status(alice, web) == http.StatusOK
		})
	}
	expect("without a policy", 0, false)

	var kept *tls.Conn
	var answer *bufio.Reader
	connect := func() {
		t.Helper()
		var err error
		kept, err = tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", db),
			&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate}})
		must(t, err)
		t.Cleanup(func() { _ = kept.Close() })
		answer = bufio.NewReader(kept)
	}
	connect()
	stillOpen := func(when string) {
		t.Helper()
		_ = kept.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = fmt.Fprint(kept, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
		resp, err := http.ReadResponse(answer, nil)
		if err != nil || resp.StatusCode != http.StatusOK || resp.Close {
			t.Fatalf("%s: the connection with TLS is not what it was: %v", when, err)
		}
		_, _ = answer.Discard(int(resp.ContentLength))
	}
	stillOpen("before")
	w.apply(`{type: MeshTLS, mesh: default, name: p, spec: {targetRef: {kind: Dataplane, labels: {app: backend}}, rules: [{default: {mode: Permissive}}]}}`)
	expect("permissive, and alice alone allowed", http.StatusForbidden, false)
	if got, _ := converse(certificate, mail, "hello", time.Second); got == "" {
		t.Error("an application that speaks first is lost to clients with TLS")
	}
	if getsThrough(mail) {
		t.Error("an application that speaks first takes clients in the clear")
	}

	const everybody = `{type: MeshTrafficPermission, mesh: default, name: all, spec: {targetRef: {kind: Dataplane, labels: {app: backend}}, from: [{targetRef: {kind: Mesh}, default: {action: Allow}}]}}`
	w.apply(everybody)
	expect("everybody allowed", http.StatusOK, true)
	stillOpen("when everybody is allowed")
	w.apply(`{type: MeshTrafficPermission, mesh: default, name: some, spec: {rules: [{default: {deny: [{spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/workload/mallory"}, path: {type: Prefix, value: /x}}]}}]}}`)
	expect("mallory denied", http.StatusForbidden, false)
	if code := inTheClear(web, "/y"); code != http.StatusOK {
		t.Errorf("off the denied path: %d", code)
	}
	_ = kept.SetDeadline(time.Now().Add(patience))
	if _, err := answer.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a policy took access away, and a connection of its inbound stays: %v", err)
	}
	connect()
	w.remove(resources.TypeMeshTrafficPermission, "some")
	expect("mallory not denied", http.StatusOK, true)
	stillOpen("all that time")
	w.remove(resources.TypeMeshTLS, "p")
	expect("strict again", 0, false)
	stillOpen("at the end")
	if n := e.counted(updates); n[updates] == "0" {
		t.Errorf("listeners were replaced as a whole: %v", n)
	}
}
