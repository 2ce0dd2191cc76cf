package xds

import (
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// egresses is a zone with egresses that reach services outside the mesh.
type egresses struct {
	store   *store.Memory
	x       *Proxies
	streams []*askingStream
}

func newEgresses(t testing.TB, proxies, services int) *egresses {
	t.Helper()
	e := &egresses{store: store.NewMemory()}
	putText(t, e.store, resources.Key{Type: resources.TypeMesh, Name: "default"}, nil, `{"routing": {"zoneEgress": true}}`)
	putText(t, e.store, resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "all"}, nil,
		`{"to": [{"targetRef": {"kind": "Mesh"}, "default": {"http": {"requestTimeout": "0s"}}}]}`)
	for i := range services {
		e.put(t, i, 0)
	}
	e.x = testProxies(e.store)
	for i := range proxies {
		name := fmt.Sprintf("out-%d", i)
		putText(t, e.store, dataplaneKey(name), nil, fmt.Sprintf(
			`{"networking": {"address": "127.0.0.%d", "listeners": [{"type": "ZoneEgress", "port": 10001, "name": "way"}]}}`, 1+i))
		a := &askingStream{s: connectWhole(t, e.x, name)}
		for k := range kinds {
			if k != kindSecret {
				a.ask(t, k)
			}
		}
		e.streams = append(e.streams, a)
	}
	e.settle(t)
	t.Cleanup(func() {
		for _, a := range e.streams {
			a.s.end()
		}
	})
	return e
}

// put writes the n-th version of a service: another address.
func (e *egresses) put(t testing.TB, service, n int) {
	t.Helper()
	key := resources.Key{Type: resources.TypeMeshExternalService, Mesh: "default", Name: fmt.Sprintf("s%03d", service)}
	putText(t, e.store, key, nil, fmt.Sprintf(`{"match": {"port": 80, "protocol": "http"},
		"endpoints": [{"address": "127.77.%d.%d", "port": 10001}]}`, n/250, 1+n%250))
}

// settle applies what has changed, and returns the number of responses.
func (e *egresses) settle(t testing.TB) (n int) {
	e.x.catchUp()
	for _, a := range e.streams {
		n += a.take(t)
	}
	return n
}

// mostForAnExternalService bounds the allocations of a change of a service outside the mesh for two egresses, from the store
// to the responses.
const mostForAnExternalService = 336

func TestAChangeOfAnExternalServiceAllocatesLittle(t *testing.T) { // it counts allocations, so it runs alone
	e, n := newEgresses(t, 2, 2), 0
	if per := testing.AllocsPerRun(20, func() {
		n++
		e.put(t, 0, n)
		if e.settle(t) != 2 {
			t.Error("not one response was sent to each egress")
		}
	}); per > mostForAnExternalService {
		t.Errorf("%.0f allocations for a change, want at most %d", per, mostForAnExternalService)
	}
}

// BenchmarkChangeOfAnExternalService measures another address of one service outside the mesh, for two egresses that
// reach it and others: from the store to the responses, without the network.
func BenchmarkChangeOfAnExternalService(b *testing.B) {
	for _, services := range []int{2, 100} {
		b.Run(fmt.Sprintf("of_%d", services), func(b *testing.B) {
			e := newEgresses(b, 2, services)
			b.ReportAllocs()
			n, sent, before := 0, 0, processorTime(b)
			for b.Loop() {
				n++
				e.put(b, 0, n)
				sent += e.settle(b)
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us")
			b.ReportMetric(float64(sent)/float64(b.N), "responses")
		})
	}
}
