package xds

import (
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// BenchmarkBuild measures what one proxy costs whose Dataplane is new: one HTTP inbound, without policies.
func BenchmarkBuild(b *testing.B) {
	spec, err := resources.NewSpec(resources.TypeDataplane, []byte(`{"networking": {"address": "10.0.0.1", "inbound": [
		{"name": "http-port", "port": 8080, "servicePort": 9080, "tags": {"kuma.io/service": "backend", "kuma.io/protocol": "http"}}]}}`))
	if err != nil {
		b.Fatal(err)
	}
	dp := testHome.Labelled(&resources.Resource{Key: dataplaneKey("backend"), Spec: spec})
	b.ReportAllocs()
	for b.Loop() {
		target, err := newTarget(dp, func(func(*resources.Resource) bool) {}, false)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := buildAll(target, nil, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
