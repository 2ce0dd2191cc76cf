package zone_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// TestIngressLeavesUnnoticed: one of two ingresses is taken away by deleting its ZoneIngress. It serves until other
// zones know, and no call fails, though nothing is tried again.
func TestIngressLeavesUnnoticed(t *testing.T) {
	t.Parallel()
	one, two := newWorldIn(t, "zone-1", rbac.Auto), newWorldIn(t, "zone-2", rbac.Auto)
	one.service("backend")
	var ingresses []*envoy
	for _, name := range []string{"first", "second"} {
		one.apply(fmt.Sprintf(`{type: ZoneIngress, name: %s, networking: {address: 127.0.0.1, port: %d}}`, name, freePort(t)))
		ingresses = append(ingresses, one.startEnvoy(zone.BootstrapConfig{ZoneIngress: name}))
	}
	two.apply(nothingUnasked)
	ports, e := two.caller("caller", `{kind: MeshService, labels: {kuma.io/display-name: backend, kuma.io/zone: zone-1}}`)
	one.apply(fmt.Sprintf(allowCaller, "zone-2"))
	one.waitTrust()
	two.waitTrust()
	one.tell(two)
	two.tell(one)
	calls := func(n int) (lost int) {
		for range n {
			if code, _ := plain(ports[0], "/"); code != http.StatusOK {
				lost++
			}
		}
		return lost
	}
	eventually(t, "reachable through both", func() bool { return calls(20) == 0 })
	leave := func(w *world, name string) {
		_, err := w.store.Apply(t.Context(),
			store.Batch{Ops: []store.Op{{Delete: resources.Key{Type: resources.TypeZoneIngress, Name: name}}}})
		must(t, err)
	}
	lost := 0
	leave(one, "first")
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); { // longer than its listener would drain
		lost += calls(10)
	}
	leave(two, hashing.Name("", "first", "zone-1", ""))
	eventually(t, "callers know", func() bool {
		lost += calls(10)
		for name, n := range e.stats("membership_total") {
			if strings.Contains(name, "backend") {
				return n == "1"
			}
		}
		return false
	})
	ingresses[0].kill()
	if lost += calls(100); lost > 1 { // at most the one that its end cuts
		t.Errorf("%d calls failed", lost)
	}
	e.refusedNothing()
}

// TestIngressRestartsBesideItself: the only ingress of a zone is followed by another Envoy of the same ZoneIngress, on
// the same port, before it stops. No caller loses more than the call that was under way.
func TestIngressRestartsBesideItself(t *testing.T) {
	t.Parallel()
	one, two := newWorldIn(t, "zone-1", rbac.Auto), newWorldIn(t, "zone-2", rbac.Auto)
	one.service("backend")
	one.apply(fmt.Sprintf(`{type: ZoneIngress, name: only, networking: {address: 127.0.0.1, port: %d}}`, freePort(t)))
	old := one.startEnvoy(zone.BootstrapConfig{ZoneIngress: "only"})
	ports, _ := two.caller("caller", `{kind: MeshService, labels: {kuma.io/display-name: backend, kuma.io/zone: zone-1}}`)
	one.apply(fmt.Sprintf(allowCaller, "zone-2"))
	one.waitTrust()
	two.waitTrust()
	one.tell(two)
	two.tell(one)
	eventually(t, "reachable", ok(ports[0], "/"))
	calls, lost := 0, 0
	call := func() {
		calls++
		if code, _ := plain(ports[0], "/"); code != http.StatusOK {
			lost++
		}
	}
	next := one.startEnvoy(zone.BootstrapConfig{ZoneIngress: "only"})
	eventually(t, "the next ingress listens", func() bool {
		call()
		return next.stats("listener_manager.total_listeners_active")["listener_manager.total_listeners_active"] == "1"
	})
	old.kill()
	for range 100 {
		call()
	}
	if lost > 1 {
		t.Errorf("%d of %d calls failed", lost, calls)
	}
	next.refusedNothing()
}

// TestAbsentProxiesAreNotCalled: with the defaults where no policy applies switched off, a proxy that was killed
// and one that has not come yet are called by nobody, as the zone knows that they are not there.
func TestAbsentProxiesAreNotCalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"first", "second"} {
		w.handler(name, "backend", answers(name))
	}
	dead := w.handler("dead", "backend", answers("dead"))
	w.allowAll()
	w.apply(nothingUnasked)
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	failed := func() (lost int, dead bool) {
		for range 60 {
			code, body := plain(ports[0], "/")
			dead = dead || strings.HasPrefix(body, "dead")
			if code != http.StatusOK {
				lost++
			}
		}
		return lost, dead
	}
	eventually(t, "all three answer", func() bool { lost, dead := failed(); return lost == 0 && dead })
	dead.kill()
	if lost, _ := failed(); lost == 0 {
		t.Error("nothing fails at once: the defaults are not off, and this test shows nothing")
	}
	eventually(t, "the dead one is not called", func() bool { lost, _ := failed(); return lost == 0 })

	late := w.lateDataplane("late")
	healthy := func(want string) func() bool {
		return func() bool {
			for name, n := range e.stats("membership_total") {
				if strings.Contains(name, "backend") {
					return n == want
				}
			}
			return false
		}
	}
	eventually(t, "the caller knows of a Dataplane without a proxy", healthy("4"))
	if lost, _ := failed(); lost > 0 {
		t.Errorf("%d of 60 calls failed while its proxy had not come", lost)
	}
	late()
	answered := false
	lost := 0
	eventually(t, "its proxy comes", func() bool {
		code, body := plain(ports[0], "/")
		if code != http.StatusOK {
			lost++
		}
		answered = answered || strings.HasPrefix(body, "late")
		return answered
	})
	if lost > 0 {
		t.Errorf("%d calls failed while its proxy came", lost)
	}
	e.refusedNothing()
}

// lateDataplane makes one of the service backend; its Envoy is started by the function that is returned.
func (w *world) lateDataplane(name string) (start func()) {
	w.t.Helper()
	srv := httptest.NewServer(answers(name))
	w.t.Cleanup(srv.Close)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: %s, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %d, servicePort: %d, protocol: http}]}}`, name, freePort(w.t), srv.Listener.Addr().(*net.TCPAddr).Port))
	return func() { w.startEnvoy(zone.BootstrapConfig{Dataplane: name}) }
}
