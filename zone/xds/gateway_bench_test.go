package xds

import (
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// putGateway writes the n-th version of a MeshGateway for the proxies with a tag, each with a host of its own.
func putGateway(b *testing.B, s store.Store, name, tag string, n int) {
	b.Helper()
	putText(b, s, resources.Key{Type: resources.TypeMeshGateway, Mesh: "default", Name: name}, nil, fmt.Sprintf(
		`{"selectors": [{"match": {%s}}], "conf": {"listeners": [{"port": 10002, "protocol": "HTTP", "hostname": "w%d.example"},
		{"port": 10002, "protocol": "HTTP", "hostname": "*"}]}}`, tag, n))
}

// BenchmarkChangeOfAGateway measures a change of a MeshGateway that all proxies of a zone serve, and of one that a single
// proxy serves, from the store to the responses, without the network.
func BenchmarkChangeOfAGateway(b *testing.B) {
	s := store.NewMemory()
	tags := func(i int) string {
		return fmt.Sprintf(`"kuma.io/service": "edge", "proxy": "dp-%d"`, i)
	}
	for i := range *changeProxies {
		putText(b, s, dataplaneKey(fmt.Sprintf("dp-%d", i)), nil, fmt.Sprintf(
			`{"networking": {"address": "127.1.%d.%d", "gateway": {"type": "BUILTIN", "tags": {%s}}}}`, i/250, 1+i%250, tags(i)))
	}
	putText(b, s, resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "bench"}, nil,
		`{"selector": {"dataplaneTags": {"kuma.io/service": "svc-0"}}, "ports": [{"name": "http", "port": 80, "targetPort": "http-port", "appProtocol": "http"}]}`)
	for _, name := range []string{"all", "one"} {
		putText(b, s, resources.Key{Type: resources.TypeMeshHTTPRoute, Mesh: "default", Name: name}, nil, fmt.Sprintf(
			`{"targetRef": {"kind": "MeshGateway", "name": %q}, "to": [{"targetRef": {"kind": "Mesh"}, "rules": [{"matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
			"default": {"backendRefs": [{"kind": "MeshService", "name": "bench", "port": 80}]}}]}]}`, name))
	}
	putGateway(b, s, "all", `"kuma.io/service": "edge"`, 0)
	putGateway(b, s, "one", tags(0), 0)
	x := testProxies(s)
	settle, end := askingProxies(b, x, *changeProxies)
	defer end()
	for name, tag := range map[string]string{"all": `"kuma.io/service": "edge"`, "one": tags(0)} {
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
