package zone_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// runningZone is zone.Run, alone, on loopback.
type runningZone struct {
	t         *testing.T
	cfg       zone.Config
	addresses map[string]string
	stop      func()
}

func runZone(t *testing.T, changes ...func(*zone.Config)) *runningZone {
	t.Helper()
	dir := t.TempDir()
	z := &runningZone{t: t, cfg: zone.Config{
		Zone: "zone-1", DataDir: filepath.Join(dir, "data"), ReadyFile: filepath.Join(dir, "ready"), Log: discardLog(),
		APIAddress: "127.0.0.1:0", XDSAddress: fmt.Sprintf("127.0.0.1:%d", freePort(t)), DiagnosticsAddress: "127.0.0.1:0",
	}}
	for _, change := range changes {
		change(&z.cfg)
	}
	z.start()
	t.Cleanup(func() { z.stop() })
	return z
}

func (z *runningZone) start() {
	z.t.Helper()
	_ = os.Remove(z.cfg.ReadyFile)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- zone.Run(ctx, z.cfg) }()
	z.stop = func() {
		z.t.Helper()
		cancel()
		must(z.t, <-done)
		z.stop = func() {}
	}
	eventually(z.t, "the ready file", func() bool {
		b, err := os.ReadFile(z.cfg.ReadyFile)
		return err == nil && json.Unmarshal(b, &z.addresses) == nil
	})
}

// call sends a request to the HTTP API and returns status and body.
func (z *runningZone) call(method, path, body string) (int, string) {
	z.t.Helper()
	req, err := http.NewRequest(method, "http://"+z.addresses["api"]+path, strings.NewReader(body))
	must(z.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	must(z.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(z.t, err)
	return resp.StatusCode, string(b)
}

func (z *runningZone) apply(path, body string) {
	z.t.Helper()
	if code, answer := z.call(http.MethodPut, "/meshes/default/"+path, body); code/100 != 2 {
		z.t.Fatalf("PUT %s: %d %s", path, code, answer)
	}
}

func (z *runningZone) dataplane(port, servicePort int) {
	z.t.Helper()
	z.apply("dataplanes/backend", fmt.Sprintf(`{"type": "Dataplane", "mesh": "default", "name": "backend", "labels": {"app": "backend"}, "networking": {"address": "127.0.0.1",
		"inbound": [{"name": "main", "port": %d, "servicePort": %d, "protocol": "http"}]}}`, port, servicePort))
}

// svid requests an identity, as causewayctl does.
func (z *runningZone) svid(dataplane string) (*x509svid.SVID, map[string]string) {
	z.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(z.t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	must(z.t, err)
	body, err := json.Marshal(
		map[string]string{"csr": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))})
	must(z.t, err)
	code, answer := z.call(http.MethodPost, "/meshes/default/dataplanes/"+dataplane+"/_svid", string(body))
	if code != http.StatusOK {
		z.t.Fatalf("%d %s", code, answer)
	}
	var signed struct {
		SpiffeID, Certificate string
		Bundles               map[string]string
		ExpirationTime        time.Time
	}
	must(z.t, json.Unmarshal([]byte(answer), &signed))
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(z.t, err)
	svid, err := x509svid.Parse([]byte(signed.Certificate),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
	must(z.t, err)
	if svid.ID.String() != signed.SpiffeID || !svid.Certificates[0].NotAfter.Equal(signed.ExpirationTime) {
		z.t.Errorf("answer %s %s, certificate %s", signed.SpiffeID, signed.ExpirationTime, svid.ID)
	}
	return svid, signed.Bundles
}

func TestSVIDEndpoint(t *testing.T) {
	t.Parallel()
	z := runZone(t)
	z.dataplane(8080, 9080)
	svid, bundles := z.svid("backend")
	if want := "spiffe://default.zone-1.mesh.local/workload/backend"; svid.ID.String() != want {
		t.Errorf("got %s, want %s", svid.ID, want)
	}
	set := x509bundle.NewSet()
	for name, text := range bundles {
		bundle, err := x509bundle.Parse(spiffeid.RequireTrustDomainFromString(name), []byte(text))
		must(t, err)
		set.Add(bundle)
	}
	if _, _, err := x509svid.Verify(svid.Certificates, set); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		path, body string
		want       int
	}{
		"no dataplane":    {"/meshes/default/dataplanes/nobody/_svid", `{"csr": "x"}`, 404},
		"other namespace": {"/meshes/default/dataplanes/backend/_svid?namespace=payments", `{"csr": "x"}`, 404},
		"other mesh":      {"/meshes/other/dataplanes/backend/_svid", `{"csr": "x"}`, 404},
		"no request":      {"/meshes/default/dataplanes/backend/_svid", `{}`, 400},
		"no JSON":         {"/meshes/default/dataplanes/backend/_svid", `hello`, 400},
		"too large": {"/meshes/default/dataplanes/backend/_svid",
			`{"csr": "` + strings.Repeat("x", 100_000) + `"}`, 413},
	} {
		if code, answer := z.call(http.MethodPost, c.path, c.body); code != c.want {
			t.Errorf("%s: %d %s", name, code, answer)
		}
	}
}

func TestInspectEndpoint(t *testing.T) {
	t.Parallel()
	z := runZone(t)
	z.dataplane(8080, 9080)
	const path = "/meshes/default/dataplanes/backend/_inbounds/"
	if code, answer := z.call(http.MethodGet, path+"kri_dp_default_zone-1__backend_main/_policies", ""); code != 200 ||
		strings.TrimSpace(answer) != `{"policies":[]}` {
		t.Errorf("%d %s", code, answer)
	}
	z.apply("meshtrafficpermissions/all", `{"type": "MeshTrafficPermission", "mesh": "default", "name": "all", "spec": {"rules": [{"default": {"allow": [{"spiffeId": {"type": "Prefix", "value": "spiffe://"}}]}}]}}`)
	z.apply("meshtrafficpermissions/one", `{"type": "MeshTrafficPermission", "mesh": "default", "name": "one", "spec": {"targetRef": {"kind": "Dataplane", "name": "backend", "sectionName": "main"},
		"default": {"deny": [{"spiffeId": {"type": "Exact", "value": "spiffe://td/x"}}]}}}`)
	code, answer := z.call(http.MethodGet, path+"kri_dp_default_zone-1__backend_main/_policies", "")
	var got, want any
	must(t, json.Unmarshal([]byte(answer), &got))
	must(t, json.Unmarshal([]byte(`{"policies": [{"kind": "MeshTrafficPermission",
		"rules": [
			{"kri": "kri_mtp_default_zone-1__all_", "conf": {"allow": [{"spiffeId": {"type": "Prefix", "value": "spiffe://"}}]}, "origin": "kri_mtp_default_zone-1__all_", "ruleIndex": 0, "position": 1},
			{"kri": "kri_mtp_default_zone-1__one_", "conf": {"deny": [{"spiffeId": {"type": "Exact", "value": "spiffe://td/x"}}]}, "origin": "kri_mtp_default_zone-1__one_", "ruleIndex": 0, "position": 2, "decidedBy": "targetRef Dataplane with sectionName beats Mesh"}],
		"origins": [{"kri": "kri_mtp_default_zone-1__all_"}, {"kri": "kri_mtp_default_zone-1__one_"}]}]}`), &want))
	if list, ok := got.(map[string]any)["policies"].([]any); ok && len(list) == 1 {
		delete(list[0].(map[string]any), "warnings")
	}
	if a, b := asJSON(got), asJSON(want); code != 200 || a != b {
		t.Errorf("%d\n%s\nwant\n%s", code, a, b)
	}
	for name, c := range map[string]struct {
		kri  string
		want int
	}{
		"malformed":         {"main", 400},
		"another dataplane": {"kri_dp_default_zone-1__frontend_main", 400},
		"another type":      {"kri_mtp_default_zone-1__backend_main", 400},
		"unknown section":   {"kri_dp_default_zone-1__backend_other", 404},
		"by port":           {"kri_dp_default_zone-1__backend_8080", 200},
	} {
		if code, answer := z.call(http.MethodGet, path+c.kri+"/_policies", ""); code != c.want {
			t.Errorf("%s: %d %s", name, code, answer)
		}
	}
}

func TestTrustEndpoint(t *testing.T) {
	t.Parallel()
	z := runZone(t)
	_, published := z.call(http.MethodGet, "/meshes/default/meshtrusts/identity-zone-1", "")
	var own struct{ Spec resources.MeshTrust }
	must(t, json.Unmarshal([]byte(published), &own))
	quoted, err := json.Marshal(own.Spec.CABundles[0].PEM.Value)
	must(t, err)
	z.apply("meshtrusts/steals", fmt.Sprintf(`{"type": "MeshTrust", "mesh": "default", "name": "steals", "spec": {"trustDomain": "default.zone-2.mesh.local",
		"caBundles": [{"type": "Pem", "pem": {"value": %s}}]}}`, quoted))
	code, answer := z.call(http.MethodGet, "/meshes/default/_trust", "")
	var got struct {
		TrustDomains []struct {
			Name        string
			Authorities int
		}
		Refused []struct{ Name, KRI, Reason string }
	}
	must(t, json.Unmarshal([]byte(answer), &got))
	if code != 200 || len(got.TrustDomains) != 1 || got.TrustDomains[0].Name != "default.zone-1.mesh.local" ||
		got.TrustDomains[0].Authorities != 1 ||
		len(got.Refused) != 1 || got.Refused[0].Name != "steals" ||
		!strings.Contains(got.Refused[0].Reason, "*.zone-1.mesh.local") {
		t.Errorf("%d %s", code, answer)
	}
	if code, answer := z.call(http.MethodGet, "/meshes/other/_trust", ""); code != 404 {
		t.Errorf("%d %s", code, answer)
	}
}

func asJSON(v any) string {
	var b bytes.Buffer
	_ = json.NewEncoder(&b).Encode(v)
	return b.String()
}

// TestRestartMovesNothing: a proxy continues to serve while its zone is down. After its restart the zone sends the
// proxy nothing, not even its identity.
func TestRestartMovesNothing(t *testing.T) {
	t.Parallel()
	z := runZone(t)
	service, _ := application(t)
	port := freePort(t)
	z.dataplane(port, service)
	z.apply("dataplanes/alice", `{"type": "Dataplane", "mesh": "default", "name": "alice", "networking": {"address": "127.0.0.1", "inbound": [{"port": 1, "servicePort": 2}]}}`)
	z.apply("meshtrafficpermissions/alice", `{"type": "MeshTrafficPermission", "mesh": "default", "name": "alice", "spec": {"rules": [{"default": {"allow": [
		{"spiffeId": {"type": "Exact", "value": "spiffe://default.zone-1.mesh.local/workload/alice"}}]}}]}}`)
	svid, _ := z.svid("alice")
	chain, key, err := svid.Marshal()
	must(t, err)
	alice := httpClient(keyPair(t, chain, key))
	e := (&world{t: t, address: z.addresses["xds"]}).startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	eventually(t, "alice allowed", func() bool { return status(alice, port) == http.StatusOK })
	const counters = "listener_manager.(listener_added|listener_modified|listener_in_place_updated|listener_removed)|extension_config_discovery.*version|cluster_manager.cluster_(added|modified|removed)"
	const secrets = "identity_(cert|trust).*update_success|ssl_context_update_by_sds"
	before, given, versions := e.stats(counters), e.stats(secrets), e.listeners()
	if len(before) < 8 || len(given) < 3 {
		t.Fatalf("stats %v %v", before, given)
	}
	z.stop()
	if got := status(alice, port); got != http.StatusOK {
		t.Errorf("while the zone is away: %d", got)
	}
	z.start()
	eventually(t, "the proxy to ask for its identity",
		func() bool { return strings.Contains(z.metrics(), `causeway_identity_kept_total{outcome="used"} 1`) })
	if after := e.stats(counters); !maps.Equal(before, after) {
		t.Errorf("the restart moved %v to %v", before, after)
	}
	if after := e.listeners(); !maps.Equal(versions, after) {
		t.Errorf("the restart moved listeners %v to %v", versions, after)
	}
	if got := status(alice, port); got != http.StatusOK {
		t.Errorf("after the restart: %d", got)
	}
	// The stream is alive: a change still arrives.
	if code, answer := z.call(http.MethodDelete, "/meshes/default/meshtrafficpermissions/alice", ""); code != 200 {
		t.Fatalf("%d %s", code, answer)
	}
	eventually(t, "alice denied", func() bool { return status(alice, port) == http.StatusForbidden })
	if after := e.stats(secrets); !maps.Equal(given, after) {
		t.Errorf("the restart moved %v to %v", given, after)
	}
	for line := range strings.Lines(z.metrics()) {
		if strings.HasPrefix(line, "causeway_xds_responses_total") &&
			!strings.HasPrefix(line, `causeway_xds_responses_total{type="ecds"} 1`) {
			t.Errorf("sent: %s", line)
		}
	}
}

// metrics returns the metrics of the zone's diagnostics.
func (z *runningZone) metrics() string {
	z.t.Helper()
	answer, err := http.Get("http://" + z.addresses["diagnostics"] + "/metrics")
	must(z.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(z.t, err)
	return string(text)
}

// TestXDSOffLoopbackIsTLS: a port off loopback serves TLS with the certificate of <DataDir>/tls.
func TestXDSOffLoopbackIsTLS(t *testing.T) {
	t.Parallel()
	z := runZone(t)
	z.stop()
	z.cfg.XDSAddress = fmt.Sprintf("0.0.0.0:%d", freePort(t))
	z.start()
	service, _ := application(t)
	port := freePort(t)
	z.dataplane(port, service)
	_, xdsPort, _ := strings.Cut(z.cfg.XDSAddress, ":")
	w := &world{t: t, address: "grpcs://127.0.0.1:" + xdsPort}
	w.startEnvoy(zone.BootstrapConfig{
		Dataplane: "backend", XDSCA: filepath.Join(z.cfg.DataDir, "tls", "ca.crt"),
		Token: z.token(`{"dataplane": "backend"}`).Token,
	})
	svid, _ := z.svid("backend")
	chain, key, err := svid.Marshal()
	must(t, err)
	client := httpClient(keyPair(t, chain, key))
	eventually(t, "the proxy is configured", func() bool { return status(client, port) == http.StatusForbidden })
}

// TestAnotherKeyForSecretsKeepsTheZoneFromStarting: the zone does not start with another key, or without one. With the
// right key it starts again.
func TestAnotherKeyForSecretsKeepsTheZoneFromStarting(t *testing.T) {
	t.Parallel()
	z := runZone(t)
	z.stop()
	file := filepath.Join(z.cfg.DataDir, secrets.KeyFileName)
	key, err := os.ReadFile(file)
	must(t, err)
	for name, spoil := range map[string]func() error{
		"another key": func() error {
			return os.WriteFile(file, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))), 0o600)
		},
		"no key": func() error { return os.Remove(file) },
	} {
		must(t, spoil())
		if err := zone.Run(context.Background(), z.cfg); !errors.Is(err, secrets.ErrWrongKey) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := os.Stat(z.cfg.ReadyFile); err == nil {
		t.Error("the ready file of the earlier run is still there")
	}
	must(t, os.WriteFile(file, key, 0o600))
	z.start()
}

// TestIdentityFilesOfAnEarlierVersion: damaged files keep the zone from starting, and are not replaced.
func TestIdentityFilesOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "identity", "default", "ca.key")
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must(t, os.WriteFile(file, []byte("x"), 0o600))
	err := zone.Run(context.Background(), zone.Config{
		Zone: "zone-1", DataDir: dir, Log: discardLog(), APIAddress: "127.0.0.1:0", XDSAddress: "127.0.0.1:0",
		DiagnosticsAddress: "127.0.0.1:0",
	})
	if !errors.Is(err, identity.ErrAuthority) {
		t.Errorf("got %v", err)
	}
	if raw, err := os.ReadFile(file); err != nil || string(raw) != "x" {
		t.Errorf("the file is %q, %v", raw, err)
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	pin := strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		change func(*zone.Config)
		want   string // "" for valid
	}{
		"alone":             {func(*zone.Config) {}, ""},
		"no zone":           {func(c *zone.Config) { c.Zone = "" }, "zone"},
		"zone with a dot":   {func(c *zone.Config) { c.Zone = "a.b" }, "zone"},
		"long zone":         {func(c *zone.Config) { c.Zone = strings.Repeat("a", 64) }, "zone"},
		"no data dir":       {func(c *zone.Config) { c.DataDir = "" }, "data dir"},
		"system namespace":  {func(c *zone.Config) { c.SystemNamespace = "A b" }, "system namespace"},
		"message size":      {func(c *zone.Config) { c.KDSMaxMessageSize = -1 }, "message size"},
		"trust alone":       {func(c *zone.Config) { c.GlobalInsecure = true }, "URL"},
		"plain loopback":    {func(c *zone.Config) { c.Global = "grpc://127.0.0.1:5685" }, ""},
		"plain elsewhere":   {func(c *zone.Config) { c.Global = "grpc://global.example:5685" }, "loopback"},
		"plain with a pin":  {func(c *zone.Config) { c.Global, c.GlobalCASHA256 = "grpc://127.0.0.1:5685", pin }, "grpcs"},
		"tls without trust": {func(c *zone.Config) { c.Global = "grpcs://global.example:5685" }, "exactly one"},
		"tls with a pin":    {func(c *zone.Config) { c.Global, c.GlobalCASHA256 = "grpcs://global.example:5685", pin }, ""},
		"tls with two": {func(c *zone.Config) { c.Global, c.GlobalCASHA256, c.GlobalCA = "grpcs://g:1", pin, "f" },
			"exactly one"},
		"bad pin":   {func(c *zone.Config) { c.Global, c.GlobalCASHA256 = "grpcs://g:1", "abc" }, "64 hex"},
		"no scheme": {func(c *zone.Config) { c.Global, c.GlobalInsecure = "global.example:5685", true }, "global"},
		"no port":   {func(c *zone.Config) { c.Global, c.GlobalInsecure = "grpcs://global.example", true }, "host:port"},
		"path":      {func(c *zone.Config) { c.Global, c.GlobalInsecure = "grpcs://g:1/x", true }, "host:port"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := zone.Config{Zone: "zone-1", DataDir: "data"}
			c.change(&cfg)
			err := cfg.Validate()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A zone that waits for its global to let it in is alive, and says why it is not ready: whoever watches it must not
// start it anew again and again.
func TestJoiningZoneIsAlive(t *testing.T) {
	join, err := (&enrolment.JoinString{Zone: "zone-1", Addresses: []string{fmt.Sprintf("127.0.0.1:%d", freePort(t))},
		CASHA256: strings.Repeat("ab", 32), Token: "t"}).Encode()
	must(t, err)
	diagnostics := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- zone.Run(ctx, zone.Config{DataDir: filepath.Join(t.TempDir(), "data"), Join: join, Log: discardLog(),
			APIAddress: "127.0.0.1:0", XDSAddress: "127.0.0.1:0", DiagnosticsAddress: diagnostics})
	}()
	get := func(page string) (int, string) {
		resp, err := http.Get("http://" + diagnostics + page)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		said, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(said)
	}
	eventually(t, "the zone to be alive", func() bool {
		status, _ := get("/livez")
		return status == http.StatusOK
	})
	eventually(t, "the zone to say that it has not joined", func() bool {
		status, said := get("/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(said, "has not joined its global yet")
	})
	cancel()
	if err := <-ended; err == nil || !strings.HasPrefix(err.Error(), "join: ") { // it was stopped before it served
		t.Errorf("it ends with %v", err)
	}
}
