package zone_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/causeway-mesh/causeway/zone"
)

// lockedBuffer holds a server's log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type issuedToken struct{ Token, ID string }

func (z *runningZone) token(body string) issuedToken {
	z.t.Helper()
	code, answer := z.call(http.MethodPost, "/meshes/default/_dataplane-tokens", body)
	if code != http.StatusOK {
		z.t.Fatalf("%d %s", code, answer)
	}
	var out issuedToken
	must(z.t, json.Unmarshal([]byte(answer), &out))
	return out
}

// TestTokensOffLoopback: off loopback, a real Envoy receives its configuration and its identity, and delivers its logs,
// only with a token. The bootstrap contains the token, and no output shows it. Revoking it ends the stream, but not the
// traffic.
func TestTokensOffLoopback(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	port := freePort(t)
	z := runZone(t, func(c *zone.Config) {
		c.XDSAddress, c.AccessLog, c.Log = fmt.Sprintf("0.0.0.0:%d", port), "als",
			slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	service, _ := application(t)
	inbound := freePort(t)
	z.dataplane(inbound, service)
	z.apply("meshtrafficpermissions/p", `{"type": "MeshTrafficPermission", "mesh": "default", "name": "p", "spec": {"rules": [{"default": {"allow": [
		{"spiffeId": {"type": "Exact", "value": "spiffe://default.zone-1.mesh.local/workload/alice"}}]}}]}}`)
	alice := httpClient(z.client("alice"))
	ca := filepath.Join(z.cfg.DataDir, "tls", "ca.crt")
	envoyWith := func(token string) *envoy {
		return (&world{t: t, address: fmt.Sprintf("grpcs://127.0.0.1:%d", port)}).startEnvoy(
			zone.BootstrapConfig{Dataplane: "backend", XDSCA: ca, Token: token})
	}
	frontends := z.token(`{"dataplane": "frontend"}`)
	for reason, token := range map[string]string{"missing": "", "another-proxy": frontends.Token} {
		e := envoyWith(token)
		eventually(t, "the refusal of one that shows what is "+reason,
			func() bool { return strings.Contains(log.String(), "reason="+reason) })
		if strings.Contains(e.get("/listeners"), "self_inbound") {
			t.Errorf("%s: it has a listener", reason)
		}
	}

	own := z.token(`{"dataplane": "backend"}`)
	e := envoyWith(own.Token)
	eventually(t, "alice allowed", func() bool { return status(alice, inbound) == http.StatusOK })
	eventually(t, "the log of what was allowed", func() bool {
		_, text := metrics(t, z)
		return strings.Contains(text, `causeway_decisions_total{policy="kri_mtp_default_zone-1__p_"`)
	})
	for _, page := range []string{"/config_dump", "/config_dump?include_eds", "/clusters", "/stats", "/server_info",
		"/init_dump"} {
		text := e.get(page)
		if strings.Contains(text, own.Token) || strings.Contains(text, own.Token[len(own.Token)-40:]) ||
			strings.Contains(text, "BEGIN PRIVATE KEY") {
			t.Errorf("%s shows a secret", page)
		}
	}
	if code, answer := z.call(http.MethodPost, "/_dataplane-tokens/_revoke",
		fmt.Sprintf(`{"id": %q}`, own.ID)); code != http.StatusOK {
		t.Fatalf("%d %s", code, answer)
	}
	eventually(t, "the end of the stream", func() bool {
		return e.stats("control_plane.connected_state")["control_plane.connected_state"] == "0"
	})
	if got := status(alice, inbound); got != http.StatusOK {
		t.Errorf("with the token went the traffic: %d", got)
	}
	for _, secret := range []string{own.Token, frontends.Token} {
		if strings.Contains(log.String(), secret) {
			t.Error("the log holds a token")
		}
	}
}

func metrics(t *testing.T, z *runningZone) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + z.addresses["diagnostics"] + "/metrics")
	must(t, err)
	defer resp.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(resp.Body)
	must(t, err)
	return resp.StatusCode, text.String()
}

// TestDataplaneTokenRequests shows which tokens can be issued.
func TestDataplaneTokenRequests(t *testing.T) {
	t.Parallel()
	z := runZone(t)
	for _, row := range []struct {
		name, path, body string
		want             int
	}{
		{"by name", "/meshes/default/_dataplane-tokens", `{"dataplane": "a"}`, 200},
		{"by labels", "/meshes/default/_dataplane-tokens", `{"labels": {"app": "a"}, "validFor": "720h"}`, 200},
		{"ingress", "/zoneingresses/ingress/_token", ``, 200},
		{"for a whole mesh", "/meshes/default/_dataplane-tokens", `{}`, 400},
		{"empty body", "/meshes/default/_dataplane-tokens", ``, 400},
		{"no such mesh", "/meshes/other/_dataplane-tokens", `{"dataplane": "a"}`, 404},
		{"in a namespace", "/meshes/default/_dataplane-tokens?namespace=a", `{"labels": {"app": "b"}}`, 200},
		{"labels that leave the namespace", "/meshes/default/_dataplane-tokens?namespace=a",
			`{"labels": {"k8s.kuma.io/namespace": "b"}}`, 400},
		{"unknown field", "/meshes/default/_dataplane-tokens", `{"dataplane": "a", "audience": "causeway-user"}`, 400},
		{"scopes", "/meshes/default/_dataplane-tokens", `{"dataplane": "a", "scopes": ["zone-ingress"]}`, 400},
		{"for ever", "/meshes/default/_dataplane-tokens", `{"dataplane": "a", "validFor": "87600h"}`, 400},
		{"for no time", "/meshes/default/_dataplane-tokens", `{"dataplane": "a", "validFor": "-1s"}`, 400},
		{"no JSON", "/meshes/default/_dataplane-tokens", `hello`, 400},
		{"revoke", "/_dataplane-tokens/_revoke", `{"id": "x"}`, 200},
		{"revoke nothing", "/_dataplane-tokens/_revoke", `{}`, 400},
	} {
		code, answer := z.call(http.MethodPost, row.path, row.body)
		if code != row.want {
			t.Errorf("%s: %d %s, want %d", row.name, code, answer, row.want)
		}
	}
}

// kubelet writes a token as the kubelet does: into a new folder, to which a link is moved.
func kubelet(t *testing.T, dir string, round int, token string) {
	t.Helper()
	version := fmt.Sprintf("..%d", round)
	must(t, os.Mkdir(filepath.Join(dir, version), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, version, "token"), []byte(token), 0o600))
	must(t, os.Symlink(version, filepath.Join(dir, "..data_tmp")))
	must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	if round == 1 {
		must(t, os.Symlink(filepath.Join("..data", "token"), filepath.Join(dir, "token")))
	}
}

// TestRenewedTokens: a real Envoy follows a token that is renewed as the kubelet renews it, and shows it nowhere: by a file
// that describes it, and by its name in the bootstrap alone, as in pods.
func TestRenewedTokens(t *testing.T) {
	t.Parallel()
	for name, describe := range map[string]bool{"described by a file": true, "named in the bootstrap": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			renewsTokens(t, describe)
		})
	}
}

func renewsTokens(t *testing.T, describe bool) {
	t.Helper()
	log := &lockedBuffer{}
	z := runZone(t, func(c *zone.Config) {
		c.XDSRequireCredentials, c.Log = true, slog.New(slog.NewTextHandler(log, nil))
	})
	service, _ := application(t)
	z.dataplane(freePort(t), service)
	dir := t.TempDir()
	kubelet(t, dir, 1, z.token(`{"dataplane": "frontend"}`).Token)
	cfg := zone.BootstrapConfig{Dataplane: "backend", RenewedTokenFile: filepath.Join(dir, "token")}
	if describe {
		text, err := zone.DescribeToken(cfg.RenewedTokenFile)
		must(t, err)
		cfg.TokenSource = filepath.Join(t.TempDir(), "token.yaml")
		must(t, os.WriteFile(cfg.TokenSource, text, 0o600))
	}
	e := (&world{t: t, address: z.addresses["xds"]}).startEnvoy(cfg)
	eventually(t, "the refusal of another's token", func() bool { return strings.Contains(log.String(), "reason=another-proxy") })
	connected := func(want string) {
		t.Helper()
		eventually(t, "a connected state of "+want, func() bool {
			return e.stats("control_plane.connected_state")["control_plane.connected_state"] == want
		})
	}
	for round := 2; round < 4; round++ {
		own := z.token(`{"dataplane": "backend"}`)
		kubelet(t, dir, round, own.Token)
		connected("1")
		for _, page := range []string{"/config_dump", "/init_dump", "/stats"} {
			if strings.Contains(e.get(page), own.Token[len(own.Token)-40:]) {
				t.Errorf("%s shows the token", page)
			}
		}
		if code, answer := z.call(http.MethodPost, "/_dataplane-tokens/_revoke", fmt.Sprintf(`{"id": %q}`, own.ID)); code != http.StatusOK {
			t.Fatalf("%d %s", code, answer)
		}
		connected("0")
	}
}
