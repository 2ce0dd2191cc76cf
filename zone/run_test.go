package zone_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

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
