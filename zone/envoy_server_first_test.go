package zone_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/zone"
)

// simultaneous is how many denied clients connect at once.
const simultaneous = 240

// TestServerSpeaksFirst: with the setting for applications that send first, allowed clients receive the greeting before
// they have sent anything. No other client reads a byte or reaches the application, however many connect.
func TestServerSpeaksFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, connections := speaksFirst(t)
	port := freePort(t)
	company := newTestCA(t)
	quoted, err := json.Marshal(company.pem())
	must(t, err)
	w.home.Zone = "" // from the global: any trust domain
	w.apply(fmt.Sprintf(`{type: MeshTrust, mesh: default, name: company, spec: {trustDomain: company.example, caBundles: [{type: Pem, pem: {value: %s}}]}}`, quoted))
	w.home.Zone = "zone-1"
	w.apply(serverFirst(port, service, true))
	const rules = `{type: MeshTrafficPermission, mesh: default, name: all, spec: {default: {
  deny: [{spiffeId: {type: Exact, value: "spiffe://company.example/ns/x/sa/mallory"}}],
  allow: [{spiffeId: {type: Prefix, value: "spiffe://company.example/ns/x/"}}%s]}}}`
	w.apply(fmt.Sprintf(rules, ""))
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice, bob := company.certificate("spiffe://company.example/ns/x/sa/alice"),
		company.certificate("spiffe://company.example/ns/y/sa/bob")
	eventually(t, "alice is greeted", func() bool { return greeted(alice, port) == banner })
	greetedAndServed(t, alice, port)

	before := connections()
	denied := []*tls.Certificate{bob, company.certificate("spiffe://company.example/ns/x/sa/mallory")}
	for _, uris := range malformed {
		denied = append(denied, company.certificate(uris...))
	}
	for i, got := range allAtOnce(denied, port) {
		if got != "" {
			t.Errorf("client %d of %d reads %q", i, simultaneous, got)
		}
	}
	if n := connections() - before; n != 0 {
		t.Errorf("the application was reached %d times", n)
	}

	open := open(t, alice, port)
	w.apply(fmt.Sprintf(rules, `, {spiffeId: {type: Exact, value: "spiffe://company.example/ns/y/sa/bob"}}`))
	eventually(t, "bob is greeted", func() bool { return greeted(bob, port) == banner })
	if !open.alive() {
		t.Error("giving access ended a connection")
	}
	w.apply(fmt.Sprintf(rules, ""))
	eventually(t, "bob is not greeted any more", func() bool { return greeted(bob, port) == "" })
	if err := open.ended(patience); err != nil {
		t.Errorf("taking access away: %v", err)
	}
	greetedAndServed(t, alice, port)

	w.apply(serverFirst(port, service, false))
	eventually(t, "the setting is gone: nobody is greeted in silence", func() bool { return greeted(alice, port) == "" })
	for name, n := range e.counted("rejected") {
		if n != "0" {
			t.Errorf("Envoy refused something: %s: %s", name, n)
		}
	}
}

// TestServerFirstTellsWhoDecided: the log and the metrics show connections that the handshake denies with the policy
// that decided, like those that it accepts, even if neither side sends anything.
func TestServerFirstTellsWhoDecided(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "access.log")
	z := runZone(t, func(c *zone.Config) { c.AccessLog = "als," + file })
	service, _ := speaksFirst(t)
	port := freePort(t)
	z.apply("dataplanes/backend", fmt.Sprintf(`{"type": "Dataplane", "mesh": "default", "name": "backend", "networking": {"address": "127.0.0.1", "inbound": [
		{"name": "smtp", "port": %d, "servicePort": %d, "tags": {"causeway.io/server-first": "true"}}]}}`, port, service))
	z.apply("meshtrafficpermissions/p", fmt.Sprintf(`{"type": "MeshTrafficPermission", "mesh": "default", "name": "p", "spec": {"rules": [{"default": {
		"allow": [{"spiffeId": {"type": "Prefix", "value": %q}}], "deny": [{"spiffeId": {"type": "Exact", "value": "%[2]smallory"}}]}}]}}`, spiffe+"a", spiffe))
	(&world{t: t, address: z.addresses["xds"]}).startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice, mallory, carol := z.client("alice"), z.client("mallory"), z.client("carol")
	eventually(t, "alice is greeted", func() bool { return greeted(alice, port) == banner })
	for range 5 {
		if greeted(mallory, port) != "" || greeted(carol, port) != "" {
			t.Error("who is denied is greeted")
		}
	}
	const policy = "kri_mtp_default_zone-1__p_"
	for _, want := range []logLine{
		{Client: "alice", Policy: policy, Verdict: "allowed"}, {Client: "mallory", Policy: policy, Verdict: "denied"},
		{Client: "carol", Policy: "default", Verdict: "denied"},
	} {
		want.Inbound, want.Client = "kri_dp_default_zone-1__backend_smtp", spiffe+want.Client
		eventually(t, fmt.Sprintf("%+v", want), func() bool { return hasLine(t, file, want) })
	}
	for _, want := range []string{
		`causeway_decisions_total{policy="` + policy + `",protocol="tcp",verdict="denied"} 5`,
		`causeway_decisions_total{policy="default",protocol="tcp",verdict="denied"} 5`,
		`causeway_decisions_total{policy="` + policy + `",protocol="tcp",verdict="allowed"} `,
	} {
		eventually(t, want, func() bool { return strings.Contains(z.metrics(), want) })
	}
	var got suggested
	z.get("/_suggest/permissions?dataplane=backend&since=1h", &got)
	if text := strings.Join(got.Warnings, "\n"); !strings.Contains(text, "because "+policy+" denied them: 5 of "+spiffe+
		"mallory") {
		t.Errorf("the denials are not told of: %s", text)
	}
}

// hasLine reports whether a line is in a log, ignoring its shadow fields.
func hasLine(t *testing.T, file string, want logLine) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	for line := range bytes.Lines(text) {
		var got logLine
		if err := json.Unmarshal(line, &got); err != nil {
			continue // the line is incomplete
		}
		if got.ShadowPolicy, got.ShadowVerdict = "", ""; got == want {
			return true
		}
	}
	return false
}

func serverFirst(port, service int, first bool) string {
	return fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %d, servicePort: %d, tags: {causeway.io/server-first: "%t"}}]}}`, port, service, first)
}

// greeted returns what a client reads if it sends nothing.
func greeted(certificate *tls.Certificate, port int) string {
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port),
		&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate}})
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	var got strings.Builder
	_, _ = io.CopyN(&got, conn, int64(len(banner)))
	return got.String()
}

func greetedAndServed(t *testing.T, certificate *tls.Certificate, port int) {
	t.Helper()
	eventually(t, "the client is greeted", func() bool { return greeted(certificate, port) == banner })
	if got, err := converse(certificate, port, "hello", patience); err != nil || got != banner+"echo hello\n" {
		t.Errorf("a conversation: %q, %v", got, err)
	}
}

// allAtOnce returns what each client reads. Every second client also sends something.
func allAtOnce(certificates []*tls.Certificate, port int) []string {
	out := make([]string, simultaneous)
	var wg sync.WaitGroup
	for i := range out {
		wg.Go(func() {
			certificate := certificates[i%len(certificates)]
			if i%2 == 0 {
				out[i] = greeted(certificate, port)
			} else {
				out[i], _ = converse(certificate, port, "hello", time.Second)
			}
		})
	}
	wg.Wait()
	return out
}
