package bolt

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// kilobyte returns a resource of about 1 KB with the labels of a real one.
func kilobyte(n, content int) *resources.Resource {
	k := storetest.Key(fmt.Sprint("policy-", n))
	r := storetest.Resource(k, content, map[string]string{
		"kuma.io/mesh": "default", "kuma.io/origin": "global", "kuma.io/env": "universal", "kuma.io/policy-role": "system",
		"kuma.io/display-name": k.Name, "app": fmt.Sprint("app-", n%1000),
	})
	spec, err := resources.NewSpec(k.Type, fmt.Appendf(nil, `{"content":%d,"to":[{"default":{"x":%q}}]}`, content,
		strings.Repeat("x", 700)))
	if err != nil {
		panic(err)
	}
	r.Spec = spec
	return r
}

func BenchmarkApplyLone(b *testing.B) {
	s := open(b, Config{})
	r := kilobyte(1, 0)
	specs := [2]*resources.Spec{r.Spec, kilobyte(1, 1).Spec}
	for i := 0; b.Loop(); i++ {
		c := r.Clone()
		c.Spec = specs[(i+1)%2]
		storetest.Apply(b, s, storetest.Put(c))
	}
}

func BenchmarkApply64(b *testing.B) {
	s := open(b, Config{})
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			r := kilobyte(w, 0)
			specs := [2]*resources.Spec{r.Spec, kilobyte(w, 1).Spec}
			for i := 0; left.Add(-1) >= 0; i++ {
				c := r.Clone()
				c.Spec = specs[i%2]
				if _, err := s.Apply(context.Background(), storetest.Put(c)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

// BenchmarkLoad100k measures a start with 100,000 resources of 1 KB.
func BenchmarkLoad100k(b *testing.B) {
	if testing.Short() {
		return
	}
	path := filepath.Join(b.TempDir(), "store.db")
	s := open(b, Config{Path: path})
	for i := range 100 {
		var batch store.Batch
		for j := range 1000 {
			batch.Ops = append(batch.Ops, store.Op{Put: kilobyte(i*1000+j, 0)})
		}
		storetest.Apply(b, s, batch)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s := open(b, Config{Path: path})
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
