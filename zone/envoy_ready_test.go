package zone_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/zone"
)

// TestReadyAddress: everybody may ask a proxy whether it is ready, and nothing else. It is not before it has what the
// zone says of it.
func TestReadyAddress(t *testing.T) {
	w := newWorld(t)
	w.waitTrust()
	port, ready, admin := freePort(t), freePort(t), freePort(t)
	bootstrap, err := zone.Bootstrap(zone.BootstrapConfig{Dataplane: "late", XDSAddress: w.address,
		AdminAddress: fmt.Sprintf("127.0.0.1:%d", admin), ReadyAddress: fmt.Sprintf("127.0.0.1:%d", ready)})
	must(t, err)
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	must(t, os.WriteFile(file, bootstrap, 0o600))
	w.runEnvoy(file)
	ask := func(method, path string) int {
		r := httptest.NewRequest(method, fmt.Sprintf("http://127.0.0.1:%d%s", ready, path), strings.NewReader(""))
		r.RequestURI = ""
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	// Envoy opens the listener once it has the answer of the zone, which does not know the Dataplane yet.
	if got := ask("GET", "/ready"); got == 200 {
		t.Error("ready, and the zone does not know the Dataplane")
	}
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: late, labels: {app: late}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %d, servicePort: 9, protocol: http}]}}`, port))
	eventually(t, "ready", func() bool { return ask("GET", "/ready") == 200 })
	for _, tt := range [][2]string{{"GET", "/"}, {"POST", "/ready"}, {"POST", "/quitquitquit"}, {"GET", "/config_dump"},
		{"GET", "/ready?x"}, {"GET", "/ready/../config_dump"}, {"GET", "//ready"}, {"GET", "/ready%3Fx"}, {"HEAD", "/stats"}} {
		if got := ask(tt[0], tt[1]); got != 404 {
			t.Errorf("%s %s: %d", tt[0], tt[1], got)
		}
	}
	for _, cfg := range []zone.BootstrapConfig{{ReadyAddress: "15021"}, {ReadyAddress: "localhost:15021"}, {ReadyAddress: "0.0.0.0:0"},
		{ReadyAddress: "0.0.0.0:15021", AdminAddress: "none"}, {ReadyAddress: "0.0.0.0:15021", AdminAddress: "127.0.0.1:0"}} {
		cfg.Dataplane, cfg.XDSAddress = "a", "127.0.0.1:5678"
		if _, err := zone.Bootstrap(cfg); err == nil || !strings.Contains(err.Error(), "ready address") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// TestReadyWaits: a proxy waits for its configuration, however long. By default Envoy gives up after 15 s for clusters and
// for listeners, and is ready without any.
func TestReadyWaits(t *testing.T) {
	t.Parallel()
	for _, cfg := range []zone.BootstrapConfig{{Dataplane: "a"}, {ZoneIngress: "in"}} {
		cfg.XDSAddress = "127.0.0.1:5678"
		raw, err := zone.Bootstrap(cfg)
		must(t, err)
		type source struct {
			InitialFetchTimeout string `json:"initial_fetch_timeout"`
		}
		var is struct {
			DynamicResources struct {
				CDSConfig source `json:"cds_config"`
				LDSConfig source `json:"lds_config"`
			} `json:"dynamic_resources"`
		}
		must(t, yaml.Unmarshal(raw, &is))
		if got := is.DynamicResources; got.CDSConfig.InitialFetchTimeout != "0s" || got.LDSConfig.InitialFetchTimeout != "0s" {
			t.Errorf("%s%s: it waits %+v, want 0s, which is forever", cfg.Dataplane, cfg.ZoneIngress, got)
		}
	}
}
