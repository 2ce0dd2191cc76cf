package rbac_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// greeting is what the application says to whom it is connected to.
const greeting = "220 hello\n"

// TestEnvoyJudgesHandshakes opens connections to one real Envoy that has a listener for each random set of rules, in front of an
// application that speaks first: those whom the evaluator allows are greeted without a word, all others read nothing.
func TestEnvoyJudgesHandshakes(t *testing.T) {
	sets := append(liveSets(), clientsByName(500), rulesOf(resources.PermissionConf{
		Deny:  []resources.PermissionMatch{{SNI: &resources.SNIMatch{Type: resources.MatchExact, Value: serverNames[1]}}},
		Allow: []resources.PermissionMatch{{}, {SpiffeID: &resources.SpiffeIDMatch{Type: resources.MatchPrefix, Value: "spiffe://"}}},
	}))
	live := &liveEnvoy{dir: shortTempDir(t), rules: sets, ca: newAuthority(t), certificates: map[string]tls.Certificate{}}
	address := greeter(t)
	var listeners []any
	for i, rules := range sets {
		filter, err := rbac.HandshakeFilter(rules, address)
		if err != nil {
			t.Fatalf("%+v: %v", rules, err)
		}
		listeners = append(listeners, live.handshakeListener(t, i, extension(t, "judge", "envoy.extensions.filters.network.set_filter_state.v3.Config", filter, nil)))
	}
	listeners = append(listeners, live.handshakeListener(t, len(sets), extension(t, "judge", "envoy.extensions.filters.network.set_filter_state.v3.Config", rbac.DenyAllHandshake(), nil)))
	live.rules = append(live.rules, matching.Rules{})
	startEnvoy(t, live.dir, listeners, object{"name": "application", "type": "ORIGINAL_DST", "lb_policy": "CLUSTER_PROVIDED", "connect_timeout": "5s"})
	eventually(t, "Envoy listens", func() bool {
		c, err := net.Dial("unix", live.socket(listenerOf{len(sets), rbac.List}, matching.TCP))
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	seen := map[bool]int{}
	for i, rules := range live.rules {
		for seed := range livePerSet {
			req := drawRequest().Example(1000*i + seed)
			req.Protocol, req.Method, req.Path, req.Headers = matching.TCP, "", "", nil
			allowed := rbac.Evaluate(rules, req).Enforced.Allowed
			if got := live.greeted(t, i, req); got != allowed {
				t.Errorf("%+v: greeted %v, allowed %v by\n%+v", req, got, allowed, rules)
			}
			seen[allowed]++
		}
	}
	if seen[true] < 25 || seen[false] < 25 {
		t.Errorf("the sample is one-sided: %v", seen)
	}
}

func (l *liveEnvoy) greeted(t *testing.T, set int, req rbac.Request) bool {
	t.Helper()
	conn := l.dial(t, listenerOf{set, rbac.List}, req)
	defer conn.Close()
	got, _ := io.ReadAll(conn)
	if len(got) > 0 && string(got) != greeting {
		t.Errorf("%+v reads %q", req, got)
	}
	return len(got) > 0
}

func (l *liveEnvoy) handshakeListener(t *testing.T, set int, judge any) object {
	t.Helper()
	path := l.socket(listenerOf{set, rbac.List}, matching.TCP)
	return object{
		"name": filepath.Base(path), "address": object{"pipe": object{"path": path}},
		"listener_filters": []any{extension(t, "envoy.filters.listener.tls_inspector", "envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector", nil, nil)},
		"filter_chains": []any{object{"transport_socket": l.ca.downstreamTLS(t), "filters": []any{
			judge,
			extension(t, "envoy.filters.network.tcp_proxy", "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", nil, object{
				"stat_prefix": "in", "cluster": "application", "upstream_connect_mode": "ON_DOWNSTREAM_TLS_HANDSHAKE", "max_early_data_bytes": 1024,
			}),
		}}},
	}
}

// greeter is an application that greets and hangs up.
func greeter(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, greeting)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

func clientsByName(n int) matching.Rules {
	var conf resources.PermissionConf
	for i := range n {
		id := &resources.SpiffeIDMatch{Type: resources.MatchExact, Value: fmt.Sprintf("spiffe://default.zone-1.mesh.local/ns/shop/sa/client-%d", i)}
		conf.Allow = append(conf.Allow, resources.PermissionMatch{SpiffeID: id})
	}
	conf.Allow = append(conf.Allow, resources.PermissionMatch{SpiffeID: &resources.SpiffeIDMatch{Type: resources.MatchExact, Value: identities[0]}})
	return rulesOf(conf)
}

// TestHandshakeThatCannotBeJudged: rules that are too many for Envoy's expressions let nobody in, and say so.
func TestHandshakeThatCannotBeJudged(t *testing.T) {
	filter, err := rbac.HandshakeFilter(clientsByName(5000), "127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "characters") || len(filter.GetOnDownstreamTlsHandshake()) > 0 {
		t.Errorf("%v, %v", filter, err)
	}
	in := &matching.InboundPort{Name: "db", Port: 1, Protocol: matching.TCP, Tags: map[string]string{resources.TagServerFirst: "true"}}
	if got := rbac.HandshakeWarnings(clientsByName(5000), in); len(got) != 2 || !strings.Contains(got[1], "closed to everybody") {
		t.Errorf("warnings: %q", got)
	}
	if got := rbac.HandshakeWarnings(clientsByName(5), in); len(got) != 1 {
		t.Errorf("warnings: %q", got)
	}
}
