package xds

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// passedDomain is the n-th MeshPassthrough of `make bench`.
var passedDomain = changedConf{resources.TypeMeshPassthrough, "default", func(n int) string {
	return fmt.Sprintf(`{"passthroughMode": "Matched", "appendMatch": [{"type": "Domain", "value": "w%d.example", "port": 443, "protocol": "tls"}]}`, n)
}}

// newRedirected is a zone of proxies that take redirected connections and answer for the names of services, as `make
// bench` has them, with a MeshPassthrough for all, and one for dp-1.
func newRedirected(t testing.TB, proxies int) *changeOfOne {
	t.Helper()
	c := &changeOfOne{store: store.NewMemory()}
	for i := range proxies {
		name := fmt.Sprintf("dp-%d", i)
		putText(t, c.store, dataplaneKey(name), map[string]string{"proxy": name}, fmt.Sprintf(`{"networking": {"address": "127.1.%d.%d",
			"inbound": [{"port": 8080, "servicePort": 9080, "name": "http-port", "tags": {"kuma.io/service": "svc-%d", "kuma.io/protocol": "http"}}],
			"outbound": [{"port": 10000, "backendRef": {"kind": "MeshService", "name": "bench-0", "port": 80}}],
			"transparentProxying": {"redirectPortOutbound": 15001}}}`, i/250, 1+i%250, i%50))
	}
	for i := range 11 {
		putText(t, c.store, resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: fmt.Sprintf("bench-%d", i)}, nil,
			`{"selector": {"dataplaneTags": {"kuma.io/service": "svc-0"}}, "ports": [{"name": "http", "port": 80, "targetPort": "http-port", "appProtocol": "http"}]}`)
	}
	putText(t, c.store, resources.Key{Type: resources.TypeHostnameGenerator, Name: "all"}, nil,
		`{"selector": {"meshService": {}}, "template": "{{ .DisplayName }}.mesh.local"}`)
	passedDomain.put(t, c.store, 0)
	passedDomain.putOne(t, c.store, "dp-1", 1)
	c.x = testProxies(c.store)
	for i := range proxies {
		name := fmt.Sprintf("dp-%d", i)
		s := newSession(c.x)
		node := testNode(name)
		node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{AdminKey: structpb.NewNumberValue(9901),
			DNSKey: structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{DNSAddress: structpb.NewStringValue("127.0.0.1:15053")}})}}
		if err := s.identify(node); err != nil {
			t.Fatal(err)
		}
		a := &askingStream{s: s}
		for k := range kinds {
			if k != kindSecret {
				a.ask(t, k)
			}
		}
		a.take(t)
		t.Cleanup(s.end)
		if i == 1 {
			c.stream = a
		}
	}
	return c
}

// BenchmarkChangeOfAPassthrough measures a change of a MeshPassthrough for one proxy that listens on the names of
// services: from the store to the response, without the network.
func BenchmarkChangeOfAPassthrough(b *testing.B) {
	one, n := newRedirected(b, *changeProxies), 1
	b.ReportAllocs()
	sent, before := 0, processorTime(b)
	for b.Loop() {
		n++
		sent += one.change(b, &passedDomain, n)
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us")
	b.ReportMetric(float64(sent)/float64(b.N), "responses")
}

// mostForAPassthrough bounds the allocations of a change of a MeshPassthrough of one proxy, from the store to the response.
const mostForAPassthrough = 413

func TestAChangeOfAPassthroughAllocatesLittle(t *testing.T) { // it counts allocations, so it runs alone
	one, n := newRedirected(t, 20), 1
	sending := one.proxy().state.Load().sending
	if per := testing.AllocsPerRun(20, func() {
		n++
		if one.change(t, &passedDomain, n) != 1 {
			t.Error("not one response was sent")
		}
	}); per > mostForAPassthrough {
		t.Errorf("%.0f allocations for a change, want at most %d", per, mostForAPassthrough)
	}
	if one.proxy().state.Load().sending != sending {
		t.Error("what the proxy sends was built again")
	}
}
