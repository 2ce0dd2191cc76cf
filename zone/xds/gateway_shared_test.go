package xds

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

const (
	replicaOfCaller = "\n---\ntype: Dataplane\nmesh: default\nname: other\nlabels: {kuma.io/workload: edge}\nnetworking: {address: 192.0.2.9, gateway: {type: BUILTIN, tags: {kuma.io/service: edge}}%s}"
	logOfEdge       = "\n---\ntype: MeshAccessLog\nmesh: default\nname: logs\nspec: {targetRef: {kind: MeshGateway, name: edge}, to: [{targetRef: {kind: Mesh}, default: {backends: [{type: File, file: {path: /dev/stdout%s}}]}}]}"
)

// replicas returns a store with testdata/network/gateway.yaml, where the proxy other serves the gateway of caller.
func replicas(t *testing.T, other, more string) *store.Memory {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "network", "gateway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(raw), "name: caller\n", "name: caller\nlabels: {kuma.io/workload: edge}\n", 1)
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(file, []byte(text+fmt.Sprintf(replicaOfCaller, other)+more), 0o600); err != nil {
		t.Fatal(err)
	}
	return storeOf(t, file)
}

// putEdge writes the gateway of the replicas, with one listener.
func putEdge(t *testing.T, s store.Store, listener string) {
	t.Helper()
	putText(t, s, resources.Key{Type: resources.TypeMeshGateway, Mesh: "default", Name: "edge"}, nil,
		`{"selectors": [{"match": {"kuma.io/service": "edge"}}], "conf": {"listeners": [`+listener+`]}}`)
}

// sameAsAlone fails unless the proxy other of x has what it has without other proxies.
func sameAsAlone(t *testing.T, x *Proxies, s store.Store) {
	t.Helper()
	alone := testProxies(s)
	alone.cfg.Sources = x.cfg.Sources
	session := connect(alone, "other")
	defer session.end()
	is, want := x.proxies[proxyID{Key: dataplaneKey("other")}], session.proxy
	for k := range kinds {
		if !is.state.Load().served(k).equal(want.state.Load().served(k)) {
			t.Errorf("%s differs from that of a proxy that shares nothing", k)
		}
	}
	if is, want := is.record.problems[problemGateway], want.record.problems[problemGateway]; is != want {
		t.Errorf("the problems are %q, want %q", is, want)
	}
}

// TestReplicasOfAGatewayShareItsPlan: replicas share what they send, except what has something of the proxy itself, and
// each listens at its own address.
func TestReplicasOfAGatewayShareItsPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		other, more string
		shared      bool
	}{
		"nothing of their own":       {shared: true},
		"lines with the workload":    {more: fmt.Sprintf(logOfEdge, ""), shared: true},
		"lines with the address":     {more: fmt.Sprintf(logOfEdge, `, format: {type: Plain, plain: "of %KUMA_SOURCE_ADDRESS%"}`)},
		"a port that is not free":    {other: ", inbound: [{name: main, port: 8080, servicePort: 80}]"},
		"an outbound of one of them": {other: ", outbound: [{port: 10001, backendRef: {kind: MeshService, name: backend, port: 80}}]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := replicas(t, c.other, c.more)
			x := testProxies(s)
			for _, name := range []string{"caller", "other"} {
				defer connect(x, name).end()
			}
			addresses := map[string]string{"caller": "192.0.2.1", "other": "192.0.2.9"}
			check := func() {
				t.Helper()
				plans := map[*plan]bool{}
				for id, p := range x.proxies {
					plans[p.state.Load().sending.plan] = true
					at := addresses[id.Name]
					for _, r := range p.state.Load().sending.placed {
						var l listenerv3.Listener
						if err := proto.Unmarshal(r.delta.GetResource().GetValue(), &l); err != nil {
							t.Fatal(err)
						}
						if is := l.GetAddress().GetSocketAddress().GetAddress(); is != at || l.Validate() != nil {
							t.Errorf("%s listens at %s, want %s", id.Name, is, at)
						}
					}
				}
				if shared := len(plans) == 1; shared != c.shared {
					t.Errorf("the plan is shared: %v, want %v", shared, c.shared)
				}
				sameAsAlone(t, x, s)
			}
			check()
			putEdge(t, s, `{"port": 8080, "protocol": "HTTP", "hostname": "new.example"}`)
			x.catchUp()
			check()
			addresses["other"] = "192.0.2.10"
			putText(t, s, dataplaneKey("other"), map[string]string{resources.LabelWorkload: "edge"},
				`{"networking": {"address": "192.0.2.10", "gateway": {"type": "BUILTIN", "tags": {"kuma.io/service": "edge"}}}}`)
			x.catchUp()
			c.shared = c.shared || c.other != "" // what only that proxy had is gone
			check()
		})
	}
}

// pair returns a new certificate and its key in PEM.
func pair(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"own.example"}}
	certificate, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
}

// TestReplicasOfAGatewayFollowItsCertificate: a new text of a secret reaches all replicas, and a text that is no
// certificate leaves each with the last one.
func TestReplicasOfAGatewayFollowItsCertificate(t *testing.T) {
	t.Parallel()
	s := replicas(t, "", "")
	putEdge(t, s, `{"port": 8443, "protocol": "HTTPS", "hostname": "own.example", "tls": {"mode": "TERMINATE",
		"certificates": [{"secret": "of-edge"}]}}`)
	x := testProxies(s)
	text := pair(t)
	x.cfg.Sources = func(*resources.Resource, *resources.DataSource) ([]byte, error) { return text, nil }
	for _, name := range []string{"caller", "other"} {
		defer connect(x, name).end()
	}
	served := func() map[string]bool {
		out := map[string]bool{}
		for _, p := range x.proxies {
			for _, c := range p.state.Load().sending.certificates {
				out[c.version] = true
			}
		}
		return out
	}
	first := served()
	if len(first) != 1 {
		t.Fatalf("the replicas have %d certificates, want 1", len(first))
	}
	sameAsAlone(t, x, s)
	text = pair(t)
	x.SourcesChanged("default")
	second := served()
	sameAsAlone(t, x, s)
	for version := range first {
		if second[version] || len(second) != 1 {
			t.Error("some replica has the former certificate")
		}
	}
	text = []byte("none")
	x.SourcesChanged("default")
	for version := range second {
		if third := served(); !third[version] || len(third) != 1 {
			t.Error("some replica has lost its certificate")
		}
	}
}

// TestAChangeOfAGatewayKeepsTheRulesOfItsRoutes: another hostname of a MeshGateway computes no policy's rules for its
// routes again, and a policy only those of its type. A route that comes, and sends elsewhere, has them computed.
func TestAChangeOfAGatewayKeepsTheRulesOfItsRoutes(t *testing.T) {
	t.Parallel()
	s := replicas(t, "", fmt.Sprintf(logOfEdge, ""))
	x := testProxies(s)
	for _, name := range []string{"caller", "other"} {
		defer connect(x, name).end()
	}
	edge := func(host string) func() {
		return func() { putEdge(t, s, fmt.Sprintf(`{"port": 8080, "protocol": "HTTP", "hostname": %q}`, host)) }
	}
	more := func(port int) func() {
		return func() {
			putText(t, s, resources.Key{Type: resources.TypeMeshHTTPRoute, Mesh: "default", Name: "more"}, nil, fmt.Sprintf(
				`{"targetRef": {"kind": "MeshGateway", "name": "edge"}, "to": [{"targetRef": {"kind": "Mesh"}, "rules": [{"matches":
				[{"path": {"type": "PathPrefix", "value": "/more"}}], "default": {"backendRefs": [{"kind": "MeshService", "name": "backend", "port": %d}]}}]}]}`, port))
		}
	}
	edge("a.example")()
	x.catchUp()
	for _, step := range []struct {
		what        string
		change      func()
		rules, read int
	}{
		{"another hostname", edge("b.example"), 0, 0},
		{"a timeout", func() {
			putText(t, s, resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "all"}, nil,
				`{"to": [{"targetRef": {"kind": "Mesh"}, "default": {"connectionTimeout": "4s"}},
				{"targetRef": {"kind": "MeshHTTPRoute", "name": "more"}, "default": {"http": {"requestTimeout": "7s"}}}]}`)
		}, 1, 0},
		{"another hostname, with the timeout", edge("c.example"), 0, 0},
		{"one more route", more(80), 6, 1},
		{"the route sends to another port", more(81), 6, 1},
	} {
		of := func() []*matching.ToRules {
			p := x.proxies[proxyID{Key: dataplaneKey("other")}].state.Load().sending.plan
			return append(slices.Clone(p.rules), p.logs)
		}
		routes := func() []*gatewayRules {
			return x.proxies[proxyID{Key: dataplaneKey("other")}].state.Load().sending.plan.gatewayRules
		}
		before, readBefore := of(), routes()
		step.change()
		x.catchUp()
		if n := newIn(before, of()); n != step.rules {
			t.Errorf("%s: the rules of %d types were computed, want %d", step.what, n, step.rules)
		}
		if n := newIn(readBefore, routes()); n != step.read {
			t.Errorf("%s: the routes of %d types were read, want %d", step.what, n, step.read)
		}
		sameAsAlone(t, x, s)
	}
}

// TestTheListenerOfAGatewayIsKept: neither another hostname nor a change of a route builds the listener of a port for HTTP;
// what it is made of does, and the listener is the one that a server builds that starts now.
func TestTheListenerOfAGatewayIsKept(t *testing.T) {
	t.Parallel()
	s := replicas(t, "", "")
	x := testProxies(s)
	for _, name := range []string{"caller", "other"} {
		defer connect(x, name).end()
	}
	edge := func(host string) func() {
		return func() { putEdge(t, s, fmt.Sprintf(`{"port": 8080, "protocol": "HTTP", "hostname": %q}`, host)) }
	}
	policy := func(typ resources.Type, text string) func() {
		return func() { putText(t, s, resources.Key{Type: typ, Mesh: "default", Name: "all"}, nil, text) }
	}
	timeout := func(conf string) func() {
		return policy(resources.TypeMeshTimeout, `{"to": [{"targetRef": {"kind": "Mesh"}, "default": {"http": {`+conf+`}}}]}`)
	}
	edge("a.example")()
	x.catchUp()
	for _, step := range []struct {
		what   string
		change func()
		parts  int
	}{
		{"another hostname", edge("b.example"), 0},
		{"a timeout of requests", timeout(`"requestTimeout": "4s"`), 0},
		{"a timeout of headers", timeout(`"requestHeadersTimeout": "4s"`), 1},
		{"a limit of connections", timeout(`"requestHeadersTimeout": "4s", "maxConnectionDuration": "9s"`), 1},
		{"another hostname, with limits", edge("c.example"), 0},
		{"spans", policy(resources.TypeMeshTrace, `{"default": {"backends": [{"type": "OpenTelemetry", "openTelemetry": {"endpoint": "192.0.2.9:4317"}}]}}`), 1},
		{"other tags of spans", policy(resources.TypeMeshTrace, `{"default": {"backends": [{"type": "OpenTelemetry",
			"openTelemetry": {"endpoint": "192.0.2.9:4317"}}], "tags": [{"name": "a", "literal": "b"}]}}`), 0},
		{"logs", policy(resources.TypeMeshAccessLog, `{"to": [{"targetRef": {"kind": "Mesh"}, "default": {"backends": [{"type": "File",
			"file": {"path": "/dev/stdout"}}]}}]}`), 1},
		{"another hostname, with logs", edge("d.example"), 0},
		{"logs for one service only", policy(resources.TypeMeshAccessLog, `{"to": [{"targetRef": {"kind": "MeshService", "name": "backend"},
			"default": {"backends": [{"type": "File", "file": {"path": "/dev/stdout"}}]}}]}`), 1},
		{"another port", func() { putEdge(t, s, `{"port": 8081, "protocol": "HTTP", "hostname": "d.example"}`) }, 1},
	} {
		of := func() []*gatewayPart {
			return x.proxies[proxyID{Key: dataplaneKey("other")}].state.Load().sending.plan.gateway
		}
		before := of()
		step.change()
		x.catchUp()
		if now := of(); len(now) != 1 || newIn(before, now) != step.parts {
			t.Errorf("%s: %d of %d listeners were built, want %d of 1", step.what, newIn(before, now), len(now), step.parts)
		}
		sameAsAlone(t, x, s)
	}
}
