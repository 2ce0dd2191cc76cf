package xds

import (
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/resources/store"
)

// changeOfOne is a mesh with policies of all types for all proxies, and for dp-1 alone.
type changeOfOne struct {
	store  *store.Memory
	x      *Proxies
	stream *askingStream
}

func newChangeOfOne(t testing.TB, proxies int) *changeOfOne {
	t.Helper()
	c := &changeOfOne{store: storeOfChanges(t, proxies)}
	for i := range changedConfs {
		changedConfs[i].put(t, c.store, 0)
		changedConfs[i].putOne(t, c.store, "dp-1", 1)
	}
	c.x = testProxies(c.store)
	c.stream = &askingStream{s: connectWhole(t, c.x, "dp-1")}
	for k := range kinds {
		if k != kindSecret {
			c.stream.ask(t, k)
		}
	}
	c.stream.take(t)
	t.Cleanup(c.stream.s.end)
	return c
}

// change writes the n-th conf for the one proxy, and returns how many responses it got.
func (c *changeOfOne) change(t testing.TB, conf *changedConf, n int) int {
	conf.putOne(t, c.store, "dp-1", n)
	c.x.catchUp()
	return c.stream.take(t)
}

// BenchmarkChangeOfOne measures a change of one policy that concerns one proxy of a zone, in a mesh with policies of all
// types for all proxies and for this one, for each type: from the store to the response, without the network.
func BenchmarkChangeOfOne(b *testing.B) {
	one := newChangeOfOne(b, *changeProxies)
	_, end := askingProxies(b, one.x, *changeProxies)
	defer end()
	for i := range changedConfs {
		c := &changedConfs[i]
		n := 1
		b.Run(fmt.Sprintf("%s_in_%s", c.typ, c.list), func(b *testing.B) {
			b.ReportAllocs()
			sent, before := 0, processorTime(b)
			for b.Loop() {
				n++
				sent += one.change(b, c, n)
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us")
			b.ReportMetric(float64(sent)/float64(b.N), "responses")
		})
	}
}
