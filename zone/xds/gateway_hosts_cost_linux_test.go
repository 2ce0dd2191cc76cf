package xds

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/resources"
)

// TestHostsAreFoundWithoutASearch: eight times as many hostnames take about ten times as long, not sixty times, as they
// would if each looked at all routes. The proxies of the zone wait meanwhile. Only the time that this thread has a
// processor counts, so that other work on the machine does not.
func TestHostsAreFoundWithoutASearch(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const few, times, turns, most = 20, 8, 8, 28
	var best [2]time.Duration
	for range turns {
		for i, n := range []int{few, few * times} {
			s, port := gatewayOfHosts(n), portFor("*")
			start := threadTime(t)
			hosts := s.hostsOf(port, port.listeners)
			if took := threadTime(t) - start; best[i] == 0 || took < best[i] {
				best[i] = took
			}
			if want := n * resources.MaxRouteHostnames; len(hosts) < want { // the limit would hide what the rest costs
				t.Fatalf("%d hosts, want %d", len(hosts), want)
			}
		}
	}
	t.Logf("%s and %s", best[0], best[1])
	if best[1] > best[0]*most {
		t.Errorf("%d hostnames take %s, %d take %s: more than %d times as long", few*resources.MaxRouteHostnames, best[0],
			few*times*resources.MaxRouteHostnames, best[1], most)
	}
}

// threadTime returns how long the thread of the caller has had a processor.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}
