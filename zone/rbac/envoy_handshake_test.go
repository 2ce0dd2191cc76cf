package rbac_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// greeting is what the application sends to each client that reaches it.
const greeting = "220 hello\n"

// TestEnvoyJudgesHandshakes opens connections to one real Envoy that has a listener for each random set of rules, in
// front of an application that speaks first. Clients that the evaluator allows get the greeting without sending
// anything; all others read nothing.
func TestEnvoyJudgesHandshakes(t *testing.T) {
	t.Parallel()
	// Most random sets deny connections: fewer sets would allow too few.
	sets := append(liveSets(max(*liveRuleSets, 25)), clientsByName(500), rulesOf(resources.PermissionConf{
		Deny: []resources.PermissionMatch{{SNI: &resources.SNIMatch{Type: resources.MatchExact, Value: serverNames[1]}}},
		Allow: []resources.PermissionMatch{{},
			{SpiffeID: &resources.SpiffeIDMatch{Type: resources.MatchPrefix, Value: "spiffe://"}}},
	}), manyPolicies(120))
	live := &liveEnvoy{dir: shortTempDir(t), rules: sets, ca: newAuthority(t), certificates: map[string]tls.Certificate{}}
	address := greeter(t)
	var listeners []any
	for i, rules := range sets {
		filter, err := rbac.HandshakeFilter(rules, address)
		if err != nil {
			t.Fatalf("%+v: %v", rules, err)
		}
		listeners = append(listeners, live.handshakeListener(t, i,
			extension(t, "judge", "envoy.extensions.filters.network.set_filter_state.v3.Config", filter, nil)))
	}
	listeners = append(listeners, live.handshakeListener(t, len(sets),
		extension(t, "judge", "envoy.extensions.filters.network.set_filter_state.v3.Config", rbac.DenyAllHandshake(), nil)))
	live.rules = append(live.rules, matching.Rules{})
	startEnvoy(t, live.dir, listeners, object{"name": "application", "type": "ORIGINAL_DST",
		"lb_policy": "CLUSTER_PROVIDED", "connect_timeout": "5s"})
	eventually(t, "Envoy listens", func() bool {
		c, err := net.Dial("unix", live.socket(listenerOf{len(sets), rbac.List}, matching.TCP))
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	seen, said := map[bool]int{}, map[logged]string{}
	for i, rules := range live.rules {
		for seed := range livePerSet {
			req := drawRequest().Example(1000*i + seed)
			req.Protocol, req.Method, req.Path, req.Headers = matching.TCP, "", "", nil
			allowed := rbac.Evaluate(rules, req).Enforced.Allowed
			if got := live.greeted(t, i, req); got != allowed {
				t.Errorf("%+v: greeted %v, allowed %v by\n%+v", req, got, allowed, rules)
			}
			seen[allowed]++
			want := rbac.Evaluate(rules, req).Enforced
			if i == len(sets) { // DenyAllHandshake has no conditions
				want.Name = rbac.NameDefault
			}
			said[logged{i, strings.Join(req.URISANs, ","), strings.ToLower(req.SNI)}] = fmt.Sprintf("%s %s",
				map[bool]string{true: "allowed", false: "denied"}[allowed], want.Name)
		}
	}
	live.checkHandshakeLog(t, said)
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
		"listener_filters": []any{extension(t, "envoy.filters.listener.tls_inspector",
			"envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector", nil, nil)},
		"filter_chains": []any{object{"transport_socket": l.ca.downstreamTLS(t), "filters": []any{
			judge,
			extension(t, "envoy.filters.network.tcp_proxy", "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
				nil, object{
					"access_log": []any{extension(t, "file", "envoy.extensions.access_loggers.file.v3.FileAccessLog",
						nil, handshakeLog(l.dir, set))},
					"stat_prefix": "in", "cluster": "application",
					"upstream_connect_mode": "ON_DOWNSTREAM_TLS_HANDSHAKE", "max_early_data_bytes": 1024,
				}),
		}}},
	}
}

// logged identifies connections of one kind.
type logged struct {
	set       int
	sans, sni string
}

func handshakeLog(dir string, set int) object {
	return object{"path": filepath.Join(dir, "handshakes.log"),
		"log_format": object{"text_format_source": object{"inline_string": fmt.Sprintf(
			"%d|%%DOWNSTREAM_PEER_URI_SAN%%|%%REQUESTED_SERVER_NAME%%|%%FILTER_STATE(%s:PLAIN)%% %%FILTER_STATE(%s:PLAIN)%%\n", set, rbac.HandshakeVerdict, rbac.HandshakePolicy)}}}
}

// checkHandshakeLog waits for the lines of all connections, and compares the deciding policies with the evaluator's.
func (l *liveEnvoy) checkHandshakeLog(t *testing.T, want map[logged]string) {
	t.Helper()
	got := map[logged]string{}
	eventually(t, "all connections are in the log", func() bool {
		text, err := os.ReadFile(filepath.Join(l.dir, "handshakes.log"))
		if err != nil {
			return false
		}
		for line := range strings.Lines(string(text)) {
			parts := strings.Split(strings.TrimSuffix(line, "\n"), "|")
			if set, err := strconv.Atoi(parts[0]); err == nil && len(parts) == 4 {
				got[logged{set, strings.TrimPrefix(parts[1], "-"), strings.TrimPrefix(parts[2], "-")}] = parts[3]
			}
		}
		return len(got) >= len(want)
	})
	names := map[string]int{}
	for kind, decided := range want {
		if got[kind] != decided {
			t.Errorf("%+v: decided %q, want %q", kind, got[kind], decided)
		}
		names[decided]++
	}
	if len(names) < 6 {
		t.Errorf("the sample is one-sided: %v", names)
	}
}

// greeter starts an application that sends the greeting and hangs up.
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
		id := &resources.SpiffeIDMatch{Type: resources.MatchExact,
			Value: fmt.Sprintf("spiffe://default.zone-1.mesh.local/ns/shop/sa/client-%d", i)}
		conf.Allow = append(conf.Allow, resources.PermissionMatch{SpiffeID: id})
	}
	conf.Allow = append(conf.Allow,
		resources.PermissionMatch{SpiffeID: &resources.SpiffeIDMatch{Type: resources.MatchExact, Value: identities[0]}})
	return rulesOf(conf)
}

// manyPolicies returns rules of n policies, two of which match the clients of the test.
func manyPolicies(n int) matching.Rules {
	rules := matching.Rules{}
	for i := range n {
		conf := resources.PermissionConf{}
		id := fmt.Sprintf("spiffe://a/%d", i)
		switch i {
		case 40:
			id = identities[0]
		case 50:
			id = identities[1]
		}
		match := []resources.PermissionMatch{{SpiffeID: &resources.SpiffeIDMatch{Type: resources.MatchExact, Value: id}}}
		if i == 50 {
			conf.Deny = match
		} else {
			conf.Deny, conf.Allow = []resources.PermissionMatch{{SpiffeID: &resources.SpiffeIDMatch{Type: resources.MatchExact, Value: id + "-x"}}}, match
		}
		rules.Items = append(rules.Items, matching.Rule{
			Origin: resources.KRI{Short: "mtp", Mesh: "default", Name: fmt.Sprintf("p-%d", i)}, Conf: conf,
		})
	}
	return rules
}
