package zone_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/zone"
)

// impostor returns a certificate that claims an identity, from a foreign authority with the name of the authority of a
// real certificate: clients present only certificates of authorities that the server names.
func impostor(t *testing.T, id string, genuine *tls.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	uri, err := url.Parse(id)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		URIs:     []*url.URL{uri},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	issued, err := x509.ParseCertificate(genuine.Certificate[0])
	must(t, err)
	foreign := &x509.Certificate{RawSubject: issued.RawIssuer}
	der, err := x509.CreateCertificate(rand.Reader, template, foreign, key.Public(), key)
	must(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestUnverifiedIdentity: a client with a certificate of a foreign authority, or one of the mesh without its key,
// appears in the log with the reason, and its identity as a claim. It never appears as a client: not in the log, the
// reports, the suggestions, or the metrics.
func TestUnverifiedIdentity(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "access.log")
	z := runZone(t, func(c *zone.Config) { c.AccessLog = "als," + file })
	httpService, _ := application(t)
	tcpService, _ := speaksFirst(t)
	web, db := freePort(t), freePort(t)
	z.apply("dataplanes/backend", fmt.Sprintf(`{"type": "Dataplane", "mesh": "default", "name": "backend", "networking": {"address": "127.0.0.1", "inbound": [
		{"name": "web", "port": %d, "servicePort": %d, "protocol": "http"}, {"name": "db", "port": %d, "servicePort": %d}]}}`, web, httpService, db, tcpService))
	z.apply("meshtrafficpermissions/p", fmt.Sprintf(`{"type": "MeshTrafficPermission", "mesh": "default", "name": "p", "spec": {"targetRef": {"kind": "Dataplane", "name": "backend"},
		"rules": [{"default": {"allow": [{"spiffeId": {"type": "Exact", "value": "%[1]salice"}}, {"spiffeId": {"type": "Exact", "value": "%[1]sceo"}}]}}]}}`, spiffe))
	(&world{t: t, address: z.addresses["xds"]}).startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice := z.client("alice")
	ceo := impostor(t, spiffe+"ceo", alice)
	thief := &tls.Certificate{Certificate: z.client("victim").Certificate, PrivateKey: ceo.PrivateKey}
	eventually(t, "alice gets in", func() bool {
		got, err := converse(alice, db, "hello", time.Second)
		return status(httpClient(alice), web) == http.StatusOK && err == nil && got != ""
	})
	for _, one := range []*tls.Certificate{ceo, thief} {
		if code := status(httpClient(one), web); code != 0 {
			t.Fatalf("a certificate that does not verify got %d", code)
		}
		if got, err := converse(one, db, "hello", time.Second); err == nil && got != "" {
			t.Fatalf("a certificate that does not verify was told %q", got)
		}
	}
	for _, inbound := range []string{"web", "db"} {
		for name, reason := range map[string]string{"ceo": "CERTIFICATE_VERIFY_FAILED", "victim": "BAD_SIGNATURE"} {
			line := fmt.Sprintf("%s claims to be %s", inbound, name)
			eventually(t, line, func() bool { return hasRefusal(t, file, inbound, spiffe+name, reason) })
		}
	}
	checkClients(t, z, file)
}

// verifiedLine is a line of the log; null fields are nil.
type verifiedLine struct {
	Inbound                            string
	Client, Claim, TLSFailure, Verdict *string
	Method, Path, Policy               *string
}

func linesOf(t *testing.T, file string) []verifiedLine {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	var out []verifiedLine
	for line := range bytes.Lines(text) {
		var one verifiedLine
		if json.Unmarshal(line, &one) == nil {
			out = append(out, one)
		}
	}
	return out
}

func hasRefusal(t *testing.T, file, inbound, claim, reason string) bool {
	t.Helper()
	for _, l := range linesOf(t, file) {
		if strings.HasSuffix(l.Inbound, "_"+inbound) && l.Claim != nil && *l.Claim == claim && l.TLSFailure != nil &&
			strings.Contains(*l.TLSFailure, reason) {
			return true
		}
	}
	return false
}

// checkClients searches all places that report clients for the unverified ones.
func checkClients(t *testing.T, z *runningZone, file string) {
	t.Helper()
	seen := map[string]bool{}
	for _, l := range linesOf(t, file) {
		if l.Client != nil && *l.Client != spiffe+"alice" {
			t.Errorf("%s stands as client of %s, verdict %v", *l.Client, l.Inbound, l.Verdict)
		}
		if l.Client != nil && l.TLSFailure != nil {
			t.Errorf("%s: a client, although: %s", *l.Client, *l.TLSFailure)
		}
		if l.Client != nil && l.Verdict != nil && *l.Verdict == "allowed" {
			seen[l.Inbound[strings.LastIndex(l.Inbound, "_")+1:]] = true
		}
	}
	if !seen["web"] || !seen["db"] {
		t.Errorf("alice, who was verified, is a client of %v", seen)
	}
	eventually(t, "the zone has heard of alice", func() bool {
		_, answer := z.call(http.MethodGet, "/_suggest/permissions?dataplane=backend&since=1h", "")
		return strings.Contains(answer, spiffe+"alice")
	})
	for _, path := range []string{"/_suggest/permissions?dataplane=backend&since=1h", "/_report/shadow"} {
		if code, answer := z.call(http.MethodGet, path, ""); code != http.StatusOK || strings.Contains(answer, "ceo") ||
			strings.Contains(answer, "victim") {
			t.Errorf("%s: %d %s", path, code, answer)
		}
	}
	resp, err := http.Get("http://" + z.addresses["diagnostics"] + "/metrics")
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	if bytes.Contains(text, []byte("ceo")) || bytes.Contains(text, []byte("victim")) {
		t.Error("the metrics tell of a client that was not verified")
	}
}
