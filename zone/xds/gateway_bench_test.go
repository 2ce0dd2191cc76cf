package xds

import (
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// putGateway writes the n-th version of a MeshGateway for the proxies with a tag, each with a host of its own.
func putGateway(b testing.TB, s store.Store, name, tag string, n int) {
	b.Helper()
	putText(b, s, resources.Key{Type: resources.TypeMeshGateway, Mesh: "default", Name: name}, nil, fmt.Sprintf(
		`{"selectors": [{"match": {%s}}], "conf": {"listeners": [{"port": 10002, "protocol": "HTTP", "hostname": "w%d.example"},
		{"port": 10002, "protocol": "HTTP", "hostname": "*"}]}}`, tag, n))
}

// Tags of the proxies of a zone of gateways: of all, and of one.
const tagOfAll, tagsOfOne = `"kuma.io/service": "edge"`, `"kuma.io/service": "edge", "proxy": "dp-0"`

// storeOfGateways returns a zone of gateways with a route to a service: those of the MeshGateway all, and of one.
func storeOfGateways(t testing.TB, proxies int) *store.Memory {
	t.Helper()
	s := store.NewMemory()
	for i := range proxies {
		putText(t, s, dataplaneKey(fmt.Sprintf("dp-%d", i)), nil, fmt.Sprintf(
			`{"networking": {"address": "127.1.%d.%d", "gateway": {"type": "BUILTIN", "tags": {%s, "proxy": "dp-%d"}}}}`, i/250, 1+i%250, tagOfAll, i))
	}
	putText(t, s, resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "bench"}, nil,
		`{"selector": {"dataplaneTags": {"kuma.io/service": "svc-0"}}, "ports": [{"name": "http", "port": 80, "targetPort": "http-port", "appProtocol": "http"}]}`)
	for _, name := range []string{"all", "one"} {
		putText(t, s, resources.Key{Type: resources.TypeMeshHTTPRoute, Mesh: "default", Name: name}, nil, fmt.Sprintf(
			`{"targetRef": {"kind": "MeshGateway", "name": %q}, "to": [{"targetRef": {"kind": "Mesh"}, "rules": [{"matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
			"default": {"backendRefs": [{"kind": "MeshService", "name": "bench", "port": 80}]}}]}]}`, name))
	}
	putGateway(t, s, "all", tagOfAll, 0)
	putGateway(t, s, "one", tagsOfOne, 0)
	return s
}

// BenchmarkChangeOfAGateway measures a change of a MeshGateway that all proxies of a zone serve, and of one that a single
// proxy serves, from the store to the responses, without the network.
func BenchmarkChangeOfAGateway(b *testing.B) {
	s := storeOfGateways(b, *changeProxies)
	x := testProxies(s)
	settle, end := askingProxies(b, x, *changeProxies)
	defer end()
	for name, tag := range map[string]string{"all": tagOfAll, "one": tagsOfOne} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n, sent, before := 0, 0, processorTime(b)
			for b.Loop() {
				n++
				putGateway(b, s, name, tag, n)
				sent += settle()
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us/change")
			b.ReportMetric(float64(sent)/float64(b.N), "responses/change")
		})
	}
}

// mostForAGateway bounds the allocations of a change of the MeshGateway of one proxy, from the store to the response.
const mostForAGateway = 386

func TestAChangeOfAGatewayAllocatesLittle(t *testing.T) { // it counts allocations, so it runs alone
	const proxies = 20
	s := storeOfGateways(t, proxies)
	settle, end := askingProxies(t, testProxies(s), proxies)
	defer end()
	n := 0
	if per := testing.AllocsPerRun(20, func() {
		n++
		putGateway(t, s, "one", tagsOfOne, n)
		if settle() != 1 {
			t.Error("not one response was sent")
		}
	}); per > mostForAGateway {
		t.Errorf("%.0f allocations for a change, want at most %d", per, mostForAGateway)
	}
}
