package zone_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// answered is a client's answer and how long it took.
type answered struct {
	status int
	header http.Header
	took   time.Duration
}

func askAs(t *testing.T, c *http.Client, method string, port int, path string) answered {
	t.Helper()
	req, err := http.NewRequest(method, fmt.Sprintf("https://127.0.0.1:%d%s", port, path), nil)
	must(t, err)
	began := time.Now()
	resp, err := c.Do(req)
	if err != nil {
		return answered{}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return answered{status: resp.StatusCode, header: resp.Header, took: time.Since(began)}
}

// TestPoliciesOnWhatIsReceived shows in a real Envoy the effect of each field of a MeshFaultInjection, a MeshRateLimit
// and the inbound part of a MeshTimeout. None of them moves a listener or a cluster.
func TestPoliciesOnWhatIsReceived(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	srv := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			time.Sleep(700 * time.Millisecond)
		case "/trickle":
			for range 20 {
				_, _ = out.Write([]byte("."))
				_ = http.NewResponseController(out).Flush()
				time.Sleep(100 * time.Millisecond)
			}
		case "/large":
			_, _ = out.Write(make([]byte, 64<<10))
		}
	}))
	t.Cleanup(srv.Close)
	port := freePort(t)
	w.httpDataplane("backend", port, srv.Listener.Addr().(*net.TCPAddr).Port)
	w.apply(`{type: MeshTrafficPermission, mesh: default, name: all, spec: {rules: [{default: {allow: [{spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/"}}]}}]}}`)
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice, bob := w.client("alice"), w.client("bob")
	eventually(t, "the inbound", func() bool { return status(alice, port) == http.StatusOK })
	listeners := e.stats("listener_manager.listener_")
	clusters := e.stats("cluster_manager.cluster_")

	for _, tt := range []struct {
		name string
		typ  resources.Type
		spec string
		// until succeeds once Envoy has the policy; then must succeed from that point on.
		until, then func() error
	}{
		{"abort, for a client and a path", resources.TypeMeshFaultInjection, `{rules: [{
		  matches: [{spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/workload/alice"}, path: {type: Prefix, value: /a/b}, method: GET}],
		  default: {http: [{abort: {httpStatus: 418, percentage: 100}}]}}]}`,
			func() error { return want(askAs(t, alice, "GET", port, "/a/b?x"), 418) },
			func() error {
				return firstOf(want(askAs(t, alice, "GET", port, "/a/b/c"), 418), want(askAs(t, alice, "GET", port, "/a/bc"), 200),
					want(askAs(t, alice, "POST", port, "/a/b"), 200), want(askAs(t, bob, "GET", port, "/a/b"), 200))
			}},
		{"abort of a share", resources.TypeMeshFaultInjection,
			`{from: [{targetRef: {kind: Mesh}, default: {http: [{abort: {httpStatus: 503, percentage: "50.5"}}]}}]}`,
			func() error { return want(askAs(t, bob, "GET", port, "/"), 503) },
			func() error {
				aborted := 0
				for range 200 {
					if askAs(t, bob, "GET", port, "/").status == 503 {
						aborted++
					}
				}
				if aborted < 50 || aborted > 150 {
					return fmt.Errorf("%d of 200 aborted, want about 101", aborted)
				}
				return nil
			}},
		{"delay", resources.TypeMeshFaultInjection, `{default: {http: [{delay: {value: 300ms, percentage: 100}}]}}`,
			func() error {
				if got := askAs(t, bob, "GET", port, "/"); got.status != 200 || got.took < 290*time.Millisecond {
					return fmt.Errorf("%d after %s", got.status, got.took)
				}
				return nil
			}, nil},
		{"response bandwidth", resources.TypeMeshFaultInjection,
			`{default: {http: [{responseBandwidth: {limit: 1Mbps, percentage: 100}}]}}`,
			func() error {
				if got := askAs(t, bob, "GET", port, "/large"); got.status != 200 || got.took < 250*time.Millisecond {
					return fmt.Errorf("%d after %s, want 64 KiB to take half a second", got.status, got.took)
				}
				return nil
			}, nil},
		{"rate limit, by path, with status and headers", resources.TypeMeshRateLimit, `{rules: [
		  {default: {local: {http: {requestRate: {num: 1, interval: 1h}, onRateLimit: {status: 503, headers: {set: [{name: x-limit, value: "100%"}], add: [{name: x-also, value: b}]}}}}}},
		  {matches: [{path: {type: Exact, value: /free}}], default: {local: {http: {disabled: true}}}}]}`,
			func() error { return want(askAs(t, bob, "GET", port, "/limited"), 503) },
			func() error {
				got := askAs(t, alice, "GET", port, "/limited")
				if got.header.Get("X-Limit") != "100%" || got.header.Get("X-Also") != "b" {
					return fmt.Errorf("headers %v", got.header)
				}
				return firstOf(want(got, 503), want(askAs(t, bob, "GET", port, "/free"), 200),
					want(askAs(t, bob, "GET", port, "/free"), 200))
			}},
		{"rate limit refills", resources.TypeMeshRateLimit,
			`{default: {local: {http: {requestRate: {num: 1, interval: 200ms}}}}}`,
			func() error { return want(askAs(t, bob, "GET", port, "/"), 429) },
			func() error {
				return within(func() error { return want(askAs(t, bob, "GET", port, "/"), 200) })
			}},
		{"request timeout", resources.TypeMeshTimeout, `{rules: [{default: {http: {requestTimeout: 200ms}}}]}`,
			func() error { return want(askAs(t, bob, "GET", port, "/slow"), 504) },
			func() error { return want(askAs(t, bob, "GET", port, "/"), 200) }},
		{"stream idle timeout", resources.TypeMeshTimeout,
			`{from: [{targetRef: {kind: Mesh}, default: {http: {streamIdleTimeout: 200ms}}}]}`,
			func() error { return want(askAs(t, bob, "GET", port, "/slow"), 504) },
			func() error { return want(askAs(t, bob, "GET", port, "/trickle"), 200) }},
		{"max stream duration", resources.TypeMeshTimeout, `{default: {http: {maxStreamDuration: 500ms}}}`,
			func() error {
				if got := askAs(t, bob, "GET", port, "/trickle"); got.took > 1500*time.Millisecond {
					return fmt.Errorf("%d after %s", got.status, got.took)
				}
				return nil
			}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.apply(fmt.Sprintf("{type: %s, mesh: default, name: p, spec: %s}", tt.typ, tt.spec))
			soon(t, tt.until)
			if tt.then != nil {
				must(t, tt.then())
			}
			w.remove(tt.typ, "p")
			soon(t, func() error {
				for range 3 {
					if err := want(askAs(t, bob, "GET", port, "/"), 200); err != nil {
						return err
					}
				}
				if strings.Contains(e.get("/config_dump?resource=dynamic_route_configs"), "percentage") {
					return fmt.Errorf("the policy is still there")
				}
				return nil
			})
		})
	}
	for what, before := range map[string]map[string]string{"listener_manager.listener_": listeners,
		"cluster_manager.cluster_": clusters} {
		if now := e.stats(what); fmt.Sprint(now) != fmt.Sprint(before) {
			t.Errorf("%s: %v, and before the policies %v", what, now, before)
		}
	}
}

func want(got answered, status int) error {
	if got.status != status {
		return fmt.Errorf("answered %d, want %d", got.status, status)
	}
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func soon(t *testing.T, condition func() error) {
	t.Helper()
	must(t, within(condition))
}

// within returns nil once the condition holds, and its last error after ten seconds.
func within(condition func() error) (last error) {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if last = condition(); last == nil {
			return nil
		}
	}
	return last
}
