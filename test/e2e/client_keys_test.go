package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestClientKeys checks that a real Envoy presents a client certificate whose key is in the resource, in a secret or in
// a file. Only callers who may read secrets find the key in what servers return or keep. A service without its key is
// not dialled.
func TestClientKeys(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	dir := t.TempDir()
	zone, err := m.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: m.global,
		Args: []string{"--external-secrets-dir", dir, "--log-level", "debug"}})
	m.must(err)
	m.zones["zone-1"] = zone
	m.must(zone.WaitMesh(t.Context(), "default"))
	other := m.startZone("zone-2")
	k := newClientKey(t)
	asks := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "known") }))
	asks.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: k.pool, MinVersion: tls.VersionTLS12}
	asks.StartTLS()
	t.Cleanup(asks.Close)
	port := asks.Listener.Addr().(*net.TCPAddr).Port
	external := func(name, key string) string {
		return fmt.Sprintf("{type: MeshExternalService, mesh: default, name: %s, spec: {match: {port: 443, protocol: http}, endpoints: [{address: 127.0.0.1, port: %d}], tls: {enabled: true, verification: {mode: SkipAll, clientCert: {inlineString: %q}, clientKey: %s}}}}",
			name, port, k.certificate, key)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	m.must(os.WriteFile(file, []byte(k.key), 0o600))
	_, err = m.CTL(t.Context(), zone, nil, "secret", "set", "client", "--from-file", file)
	m.must(err)
	m.must(os.Mkdir(filepath.Join(dir, "default"), 0o700))
	m.must(os.WriteFile(filepath.Join(dir, "default", "client.pem"), []byte(k.key), 0o600))
	m.must(os.Symlink(file, filepath.Join(dir, "default", "link.pem")))

	inline := external("by-text", fmt.Sprintf("{inlineString: %q}", k.key))
	m.apply(m.global, inline)
	m.apply(zone, strings.Join([]string{
		external("of-zone", fmt.Sprintf("{inlineString: %q}", k.key)), external("by-secret", "{secret: client}"),
		external("by-file", "{file: {path: client.pem}}"),
		external("no-secret", "{secret: other}"), external("by-link", "{file: {path: link.pem}}"),
	}, "\n---\n"))
	names := []string{"by-text", "of-zone", "by-secret", "by-file", "no-secret", "by-link"}
	ports := k.outbounds(m, zone, names)
	proxy, err := m.StartProxy(t.Context(), cluster.ProxyConfig{Zone: zone, Mesh: "default", Dataplane: "caller"})
	m.must(err)
	m.must(proxy.WaitListeners(t.Context(), ports[:4]...))
	for i, name := range names {
		if strings.HasPrefix(name, "no-") || strings.HasSuffix(name, "-link") {
			continue
		}
		m.eventually(name, func(ctx context.Context) error { return answers(ctx, ports[i], "known") })
	}
	for i, name := range names[4:] {
		if err := answers(t.Context(), ports[4+i], "known"); err == nil {
			t.Errorf("%s: it was dialled", name)
		}
	}
	k.lookedFor(m, []*cluster.Server{m.global, zone, other}, proxy)
	k.edited(m, inline)
	m.must(proxy.Stop(t.Context()))
	for _, s := range []*cluster.Server{other, zone, m.global} {
		m.must(s.Stop(t.Context()))
		k.files(t, s)
	}
}

// clientKey is a certificate that a service requires, and its key.
type clientKey struct {
	certificate, key string
	pool             *x509.CertPool
	// line is a part of the key that occurs nowhere else.
	line string
}

func newClientKey(t *testing.T) *clientKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "caller"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	k := &clientKey{
		certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), pool: x509.NewCertPool(),
	}
	k.pool.AppendCertsFromPEM([]byte(k.certificate))
	k.line = strings.Split(k.key, "\n")[1][40:]
	return k
}

// outbounds creates a Dataplane that calls the services, and returns its ports.
func (k *clientKey) outbounds(m *mesh, zone *cluster.Server, names []string) []int {
	m.t.Helper()
	var outbounds []string
	ports := make([]int, len(names))
	for i, name := range names {
		var err error
		ports[i], err = porttest.Free()
		m.must(err)
		ref := "name: " + name
		if name == "by-text" { // on the global
			ref = "labels: {kuma.io/display-name: by-text}"
		}
		outbounds = append(outbounds, fmt.Sprintf(
			"{address: 127.0.0.1, port: %d, backendRef: {kind: MeshExternalService, %s, port: 443}}", ports[i], ref))
	}
	inbound, err := porttest.Free()
	m.must(err)
	m.apply(zone, fmt.Sprintf("{type: Dataplane, mesh: default, name: caller, networking: {address: 127.0.0.1, inbound: [{name: http, port: %d, servicePort: 1, protocol: http}], outbound: [%s]}}",
		inbound, strings.Join(outbounds, ", ")))
	return ports
}

func answers(ctx context.Context, port int, want string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	answer, err := get(ctx, fmt.Sprintf("127.0.0.1:%d", port), "/")
	if err == nil && string(answer.body) != want {
		err = fmt.Errorf("%s: %s", answer.Status, answer.body)
	}
	return err
}

// lookedFor searches the answers of servers and of the proxy for the key. A caller who may read secrets finds it.
func (k *clientKey) lookedFor(m *mesh, servers []*cluster.Server, proxy *cluster.Proxy) {
	m.t.Helper()
	for _, s := range servers {
		for _, path := range []string{"/meshexternalservices", "/meshexternalservices?form=explicit",
			"/meshes/default/meshexternalservices/by-text?format=k8s",
			"/meshes/default/meshexternalservices/of-zone", "/_audit", "/meshes/default/dataplanes/caller/_policies",
			"/_rollout/meshexternalservices/default/of-zone", "/meshes/default/_secrets"} {
			answer, err := get(m.t.Context(), s.Address("api"), path)
			m.must(err)
			k.absent(m.t, s.Name()+path, answer.body)
			if bytes.Contains(answer.body, []byte("causewaySealed")) {
				m.t.Errorf("%s%s shows the sealed form", s.Name(), path)
			}
		}
		backup := filepath.Join(m.t.TempDir(), "backup")
		_, err := m.CTL(m.t.Context(), s, nil, "backup", "create", backup)
		m.must(err)
		k.absent(m.t, "the backup of "+s.Name(), unpacked(m.t, backup))
		k.absent(m.t, "the log of "+s.Name(), []byte(s.Log()))
	}
	dump, err := get(m.t.Context(), strings.TrimPrefix(proxy.AdminURL(), "http://"), "/config_dump?include_eds")
	m.must(err)
	k.absent(m.t, "the configuration of the Envoy", dump.body)
	var revealed struct {
		Spec struct {
			TLS struct {
				Verification struct {
					ClientKey struct{ InlineString string }
				}
			}
		}
	}
	m.must(servers[1].API.Do(m.t.Context(), http.MethodPost, "/meshes/default/meshexternalservices/of-zone/_reveal",
		nil, &revealed))
	if revealed.Spec.TLS.Verification.ClientKey.InlineString != k.key {
		m.t.Error("who may read secrets does not see the key")
	}
}

func (k *clientKey) absent(t *testing.T, where string, given []byte) {
	t.Helper()
	if bytes.Contains(given, []byte(k.line)) {
		t.Errorf("%s has the key", where)
	}
}

// edited applies what the server shows. Nothing changes.
func (k *clientKey) edited(m *mesh, document string) {
	m.t.Helper()
	shown, err := m.CTL(m.t.Context(), m.global, nil, "get", "meshexternalservice", "by-text", "-o", "yaml")
	m.must(err)
	if !bytes.Contains(shown, []byte("sha256:")) {
		m.t.Errorf("no hash in %s", shown)
	}
	for what, again := range map[string]string{"what is shown": string(shown), "what was written": document} {
		out, err := m.CTL(m.t.Context(), m.global, strings.NewReader(again), "apply", "-f", "-")
		m.must(err)
		if !bytes.Contains(out, []byte("unchanged")) {
			m.t.Errorf("%s, applied again: %s", what, out)
		}
	}
}

// files searches all files of a data folder.
func (k *clientKey) files(t *testing.T, s *cluster.Server) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(s.DataDir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(s.DataDir, path))
		k.absent(t, s.Name()+"/"+path, raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func unpacked(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plain, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
