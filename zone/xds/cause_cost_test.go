package xds

import (
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources/store"
)

// TestFollowingCostsNothingWithoutTracing: no allocation between a change and its answer.
func TestFollowingCostsNothingWithoutTracing(t *testing.T) {
	s := &session{proxies: &Proxies{metrics: newMetrics(nil)}}
	cause := &store.Cause{Written: time.Now()}
	if n := testing.AllocsPerRun(100, func() {
		s.expect(kindExtension, cause)
		s.mu.Lock()
		s.leaveLocked(kindExtension)
		s.mu.Unlock()
		s.arrived(kindExtension, "")
	}); n != 0 {
		t.Errorf("%v allocations for each change", n)
	}
}
