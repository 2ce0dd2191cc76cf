package xds

import (
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// BenchmarkChangeOfPermissions measures a change of one permission for all proxies of a zone, each of which has one of its own
// beside it: from the store to the responses, without the network.
func BenchmarkChangeOfPermissions(b *testing.B) {
	s := store.NewMemory()
	rule := func(name, target string, n, last int) {
		allow := ""
		for k := range 4 {
			allow += fmt.Sprintf(`{"spiffeID": {"type": "Prefix", "value": "spiffe://default.zone.mesh.local/ns/n%d/sa/s%d"}},`, n, k)
		}
		allow += fmt.Sprintf(`{"spiffeID": {"type": "Exact", "value": "spiffe://bench/m%d"}}`, last)
		putText(b, s, resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default", Name: name}, nil,
			`{"targetRef": `+target+`, "rules": [{"default": {"allow": [`+allow+`]}}]}`)
	}
	for i := range *changeProxies {
		name := fmt.Sprintf("dp-%d", i)
		putText(b, s, dataplaneKey(name), map[string]string{"proxy": name}, fmt.Sprintf(`{"networking": {"address": "127.1.%d.%d",
			"inbound": [{"port": 8080, "servicePort": 9080, "name": "http-port", "tags": {"kuma.io/service": "svc-%d", "kuma.io/protocol": "http"}}]}}`, i/250, 1+i%250, i%50))
		rule("bench-"+name, `{"kind": "Dataplane", "labels": {"proxy": "`+name+`"}}`, i, 0)
	}
	rule("bench", `{"kind": "Mesh"}`, *changeProxies, 0)
	x := testProxies(s)
	settle, end := askingProxies(b, x, *changeProxies)
	defer end()
	settle()
	n := 0
	b.ReportAllocs()
	sent, before := 0, processorTime(b)
	for b.Loop() {
		n++
		rule("bench", `{"kind": "Mesh"}`, *changeProxies, n)
		sent += settle()
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N)/float64(*changeProxies), "cpu-us/proxy")
	b.ReportMetric(float64(sent)/float64(b.N)/float64(*changeProxies), "responses/proxy")
}
