package zone_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/zone"
)

// TestBootstrapOfAPod: what is rendered before the pod exists is, with the pod's name and address put in, what is rendered
// with them.
func TestBootstrapOfAPod(t *testing.T) {
	t.Parallel()
	probes := []injection.Probe{{Path: "/n/a", Port: 8080, Timeout: 1, HTTPGet: &injection.HTTPGet{Path: "/ready?a=$(B)"}},
		{Path: "/n/b", Port: 8080, Timeout: 1, TCPSocket: &struct{}{}}, {Path: "/n/c", Port: 9000, Timeout: 1, GRPC: &injection.GRPCProbe{}}}
	for _, c := range []struct {
		every, address string
		six            bool
	}{{"0.0.0.0", "10.0.0.1", false}, {"[::]", "fd00::1", true}} {
		later, err := zone.PodBootstrap(&injection.Bootstrap{Mesh: "default", Namespace: "shop", Name: "NAME", XDSAddress: "127.0.0.1:5678",
			TokenFile: "/var/run/secrets/causeway.io/token", AdminAddress: "127.0.0.1:9901", ReadyAddress: c.every + ":15021",
			Drain: 30 * time.Second, ClusterDNS: true, Probes: probes, ProbeAddress: c.every + ":15020", Application: "ADDRESS", IPv6: c.six})
		must(t, err)
		now, err := zone.Bootstrap(zone.BootstrapConfig{Mesh: "default", Namespace: "shop", Dataplane: "backend-1", XDSAddress: "127.0.0.1:5678",
			RenewedTokenFile: "/var/run/secrets/causeway.io/token", AdminAddress: "127.0.0.1:9901", ReadyAddress: c.every + ":15021",
			DrainTime: 30 * time.Second, ClusterDNS: true, Probes: probes, ProbeAddress: c.every + ":15020", ApplicationAddress: c.address})
		must(t, err)
		got := strings.NewReplacer("NAME", "backend-1", "ADDRESS", c.address).Replace(string(later))
		is, err := yaml.JSONToYAML([]byte(got))
		must(t, err)
		if _, want, _ := strings.Cut(string(now), "\n"); string(is) != want {
			t.Errorf("%s: %s\nwant %s", c.address, is, want)
		}
	}
	if _, err := zone.PodBootstrap(&injection.Bootstrap{Name: "NAME", XDSAddress: "127.0.0.1:5678", Drain: time.Second, TokenFile: "/a:b/token"}); err == nil {
		t.Error("a path that Envoy reads as two is taken")
	}
	for _, value := range []string{"a\nb", "a\x00b", strings.Repeat("a", 20_000)} {
		get := &injection.HTTPGet{Headers: []injection.HTTPHeader{{"name": "x-a", "value": value}}}
		if _, err := zone.PodBootstrap(&injection.Bootstrap{Name: "NAME", XDSAddress: "127.0.0.1:5678", Drain: time.Second, TokenFile: "/token",
			Probes: []injection.Probe{{Path: "/n/a", Port: 8080, HTTPGet: get}}, ProbeAddress: "0.0.0.0:15020", Application: "ADDRESS"}); err == nil ||
			!strings.Contains(err.Error(), "probes[0]: ") {
			t.Errorf("a header with which Envoy does not start, %.10q: %v", value, err)
		}
	}
}

// TestPodBootstrapFits: as many probes and hooks as a pod may have fit into an argument, whatever their kind, and each may have a
// port of its own. Envoy takes them.
func TestPodBootstrapFits(t *testing.T) {
	t.Parallel()
	odd := []string{"y", "1e3", "0x1f", "~", "<<", "a: b", " a #", "a\u2028b", "😀", `\n"`, "$(CAUSEWAY_POD_IP)", "$$", "%"}
	for kind, action := range map[string]string{"http": `"httpGet": {"path": "/healthz/ready", "port": %d, "httpHeaders": [{"name": "x-odd", "value": %s}]}`,
		"https": `"httpGet": {"path": "/healthz/ready", "scheme": "HTTPS", "port": %d, "httpHeaders": [{"name": "x-odd", "value": %s}]}`,
		"tcp":   `"tcpSocket": {"port": %d}, "odd": %s`, "grpc": `"grpc": {"port": %d, "service": %s}`} {
		var containers []string
		for i := range injection.MaxProbes {
			value, err := json.Marshal(odd[i%len(odd)])
			must(t, err)
			containers = append(containers, fmt.Sprintf(`{"name": "container-%02d", "readinessProbe": {`+action+`}}`, i, 8000+i, value))
		}
		result, err := injection.Inject([]byte(`{"metadata": {}, "spec": {"containers": [`+strings.Join(containers, ",")+`]}}`),
			injection.Namespace{Name: "shop", Labels: map[string]string{"kuma.io/sidecar-injection": "enabled"}},
			&injection.Settings{XDSAddress: "127.0.0.1:5678", Nonce: rand.Text(), Bootstrap: zone.PodBootstrap})
		if err != nil {
			t.Errorf("%s: %.300s", kind, err)
			continue
		}
		var init []struct{ Args []string }
		must(t, json.Unmarshal(result.Patch[0].Value, &init))
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "token"), []byte("e30.e30.c2ln"), 0o600))
		text := strings.NewReplacer("$(CAUSEWAY_POD_NAME)", "1", "$(CAUSEWAY_POD_IP)", "10.0.0.1", "$$", "$", "/var/run/secrets/causeway.io", dir).Replace(init[1].Args[1])
		if out, err := exec.Command(envoyBinary(t), "--config-yaml", text, "--mode", "validate").CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %.300s", kind, err, out[max(0, len(out)-300):])
		}
	}
}
