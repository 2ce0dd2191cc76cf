package rbac_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/server/programtest"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

func envoyBinary(t *testing.T) string {
	t.Helper()
	path, err := programtest.Envoy()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEnvoyAcceptsGoldens makes a real Envoy validate a bootstrap with the filters of each golden input.
func TestEnvoyAcceptsGoldens(t *testing.T) {
	t.Parallel()
	envoy := envoyBinary(t)
	ca := newAuthority(t)
	for _, input := range goldenInputs(t) {
		t.Run(filepath.Base(input), func(t *testing.T) {
			dir := shortTempDir(t)
			var listeners []any
			for section, in := range loadInbounds(t, input) {
				for _, form := range forms {
					path := filepath.Join(dir, section+"-"+string(form))
					listeners = append(listeners, ca.listener(t, path, in.protocol, filtersOf(form, in.rules)))
				}
			}
			listeners = append(listeners, ca.denyingListeners(t, dir)...)
			validate(t, envoy, dir, listeners)
		})
	}
}

func validate(t *testing.T, envoy, dir string, listeners []any) {
	t.Helper()
	out, err := exec.Command(envoy, "--mode", "validate", "-l", "error", "-c",
		writeBootstrap(t, dir, listeners)).CombinedOutput()
	if err != nil {
		t.Errorf("Envoy refuses the configuration: %v\n%s", err, out)
	}
}

func (ca *authority) denyingListeners(t *testing.T, dir string) []any {
	deny := filters{http: rbac.DenyAllHTTP(), dryRun: rbac.DenyAllNetwork("in."), enforced: rbac.DenyAllNetwork("in.")}
	return []any{
		ca.listener(t, filepath.Join(dir, "deny-http"), matching.HTTP, deny),
		ca.listener(t, filepath.Join(dir, "deny-tcp"), matching.TCP, deny),
	}
}

// shortTempDir returns a temporary directory whose path is short enough for a socket in it.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rbac")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func writeBootstrap(t *testing.T, dir string, listeners []any, clusters ...any) string {
	t.Helper()
	raw, err := json.Marshal(object{"static_resources": object{"listeners": listeners,
		"clusters": append([]any{}, clusters...)}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "bootstrap.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

type object = map[string]any

// listener returns a listener on the socket at path that accepts TLS with or without a client certificate. It answers
// clients that the filters allow: on HTTP with 200, on TCP with an echo.
func (ca *authority) listener(t *testing.T, path string, protocol matching.Protocol, f filters) object {
	t.Helper()
	chain := object{"transport_socket": ca.downstreamTLS(t)}
	l := object{
		"name": filepath.Base(path), "address": object{"pipe": object{"path": path}}, "filter_chains": []any{chain},
		"listener_filters": []any{extension(t, "envoy.filters.listener.tls_inspector",
			"envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector", nil, nil)},
	}
	if protocol == matching.HTTP {
		chain["filters"] = []any{connectionManager(t, path, f)}
		return l
	}
	chain["filters"] = []any{
		extension(t, "envoy.filters.network.rbac", "envoy.extensions.filters.network.rbac.v3.RBAC", f.dryRun, nil),
		extension(t, "envoy.filters.network.rbac", "envoy.extensions.filters.network.rbac.v3.RBAC", f.enforced, nil),
		extension(t, "envoy.filters.network.echo", "envoy.extensions.filters.network.echo.v3.Echo", nil, nil),
	}
	const metadata = "%DYNAMIC_METADATA(envoy.filters.network.rbac:"
	l["access_log"] = accessLog(t, path, "%DOWNSTREAM_PEER_URI_SAN% %REQUESTED_SERVER_NAME% "+
		metadata+"enforced_shadow_effective_policy_id)% "+metadata+"dryrun_shadow_effective_policy_id)% "+
		metadata+"dryrun_shadow_engine_result)%")
	return l
}

// connectionManager normalises paths as inbounds do, and logs which policy decided.
func connectionManager(t *testing.T, path string, f filters) object {
	const metadata = "%DYNAMIC_METADATA(envoy.filters.http.rbac:"
	return extension(t, "envoy.filters.network.http_connection_manager",
		"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", nil, object{
			"stat_prefix": "in", "normalize_path": true, "merge_slashes": true,
			"path_with_escaped_slashes_action": "REJECT_REQUEST",
			"http_filters": []any{
				extension(t, "envoy.filters.http.rbac", "envoy.extensions.filters.http.rbac.v3.RBAC", f.http, nil),
				extension(t, "envoy.filters.http.router", "envoy.extensions.filters.http.router.v3.Router", nil, nil),
			},
			"route_config": object{"virtual_hosts": []any{object{"name": "all", "domains": []any{"*"}, "routes": []any{
				object{"match": object{"prefix": "/"}, "direct_response": object{"status": 200}},
			}}}},
			"access_log": accessLog(t, path, "%DOWNSTREAM_PEER_URI_SAN% %REQUESTED_SERVER_NAME% %REQ(:METHOD)% %REQ(:PATH)% "+
				"%RESPONSE_CODE% "+metadata+"enforced_effective_policy_id)% "+
				metadata+"dryrun_shadow_effective_policy_id)% "+metadata+"dryrun_shadow_engine_result)%"),
		})
}

func accessLog(t *testing.T, path, format string) []any {
	t.Helper()
	return []any{extension(t, "envoy.access_loggers.file", "envoy.extensions.access_loggers.file.v3.FileAccessLog",
		nil, object{
			"path": path + ".log", "log_format": object{"text_format_source": object{"inline_string": format + "\n"}},
		})}
}

// extension returns a typed extension whose configuration is message, or fields.
func extension(t *testing.T, name, messageType string, message proto.Message, fields object) object {
	t.Helper()
	config := object{}
	if message != nil {
		config = asMap(t, message)
	}
	for k, v := range fields {
		config[k] = v
	}
	config["@type"] = "type.googleapis.com/" + messageType
	return object{"name": name, "typed_config": config}
}

// authority is a certificate authority for one test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	ca := &authority{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	ca.certificate = template
	ca.certificate = ca.sign(t, template, &ca.key.PublicKey)
	return ca
}

// issue makes a certificate with the given URI SANs.
func (ca *authority) issue(t *testing.T, uris ...string) tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "leaf"}, DNSNames: []string{"leaf"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, u := range uris {
		scheme, rest, _ := strings.Cut(u, ":")
		template.URIs = append(template.URIs, &url.URL{Scheme: scheme, Opaque: rest}) // written unchanged
	}
	return tls.Certificate{Certificate: [][]byte{ca.sign(t, template, &key.PublicKey).Raw}, PrivateKey: key}
}

func (ca *authority) sign(t *testing.T, template *x509.Certificate, public *ecdsa.PublicKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, public, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (ca *authority) downstreamTLS(t *testing.T) object {
	t.Helper()
	leaf := ca.issue(t, "spiffe://a.mesh/server")
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	inline := func(kind string, der []byte) object {
		return object{"inline_string": string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))}
	}
	return extension(t, "envoy.transport_sockets.tls", "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
		nil, object{
			"common_tls_context": object{
				"tls_certificates": []any{object{
					"certificate_chain": inline("CERTIFICATE", leaf.Certificate[0]), "private_key": inline("PRIVATE KEY", key),
				}},
				"validation_context": object{"trusted_ca": inline("CERTIFICATE", ca.certificate.Raw)},
			},
		})
}

// startEnvoy runs Envoy until the test ends; the caller waits for its listeners.
func startEnvoy(t *testing.T, dir string, listeners []any, clusters ...any) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "envoy.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(envoyBinary(t), "-c", writeBootstrap(t, dir, listeners, clusters...), "-l", "error",
		"--concurrency", "1", "--disable-hot-restart", "--file-flush-interval-msec", "50")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			t.Error(err)
		}
		if t.Failed() {
			raw, _ := os.ReadFile(log.Name())
			t.Logf("Envoy said: %s", raw)
		}
		_ = log.Close()
	})
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 20 s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
