package zone_test

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone"
)

func discardLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

type counter struct{ n atomic.Int64 }

func (c *counter) add()       { c.n.Add(1) }
func (c *counter) value() int { return int(c.n.Load()) }

const allowAlice = `{type: MeshTrafficPermission, mesh: default, name: alice, spec: {targetRef: {kind: Dataplane, labels: {app: backend}}, rules: [{default: {allow: [
  {spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/workload/alice"}}]}}]}}`

// status returns the status that a client receives, 0 if the connection fails.
func status(c *http.Client, port int) int {
	resp, err := c.Get(fmt.Sprintf("https://127.0.0.1:%d/hello", port))
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func (w *world) httpDataplane(name string, port, servicePort int) {
	w.t.Helper()
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: %s, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %d, servicePort: %d, protocol: http}]}}`, name, port, servicePort))
}

func TestPolicyReachesARealEnvoy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, hits := application(t)
	port := freePort(t)
	w.httpDataplane("backend", port, service)
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice, bob := w.client("alice"), w.client("bob")

	eventually(t, "default deny", func() bool { return status(alice, port) == http.StatusForbidden })
	if hits() != 0 {
		t.Fatalf("the application was reached %d times before anybody was allowed", hits())
	}
	before := e.listeners()
	w.apply(allowAlice)
	eventually(t, "alice allowed", func() bool { return status(alice, port) == http.StatusOK })
	if got := status(bob, port); got != http.StatusForbidden {
		t.Errorf("bob got %d", got)
	}
	w.apply(strings.ReplaceAll(allowAlice, "workload/alice", "workload/bob"))
	eventually(t, "bob allowed", func() bool { return status(bob, port) == http.StatusOK })
	if got := status(alice, port); got != http.StatusForbidden {
		t.Errorf("alice got %d after her permission went", got)
	}
	if after := e.listeners(); !maps.Equal(before, after) {
		t.Errorf("policies moved listeners: %v, then %v", before, after)
	}
	// A change that does concern the listener is visible: the comparison above can fail.
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %d, servicePort: %d, protocol: tcp}]}}`, port, service))
	eventually(t, "a change of the listener shows", func() bool {
		after := e.listeners()
		return before["listener self_inbound_dp_main"] != after["listener self_inbound_dp_main"] &&
			before[updates] != after[updates]
	})
}

func TestShadowDenyAndSectionName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, _ := application(t)
	one, two := freePort(t), freePort(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, networking: {address: 127.0.0.1, inbound: [
  {name: one, port: %d, servicePort: %d, protocol: http}, {name: two, port: %d, servicePort: %d, protocol: http}]}}`, one, service, two, service))
	w.apply(`{type: MeshTrafficPermission, mesh: default, name: one, spec: {targetRef: {kind: Dataplane, name: backend, sectionName: one}, rules: [{default: {
  allowWithShadowDeny: [{spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/workload/alice"}}],
  allow: [{spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/workload/bob"}}]}}]}}`)
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice, bob := w.client("alice"), w.client("bob")
	eventually(t, "bob allowed on one", func() bool { return status(bob, one) == http.StatusOK })
	const denied = "http.self_inbound_dp_one.rbac.dryrun_.shadow_denied"
	before := e.stats(denied)[denied]
	if before == "" {
		t.Fatalf("no such counter: %v", e.stats("rbac"))
	}
	if got := status(bob, one); got != http.StatusOK || e.stats(denied)[denied] != before {
		t.Errorf("bob got %d; shadow denied %s, then %s", got, before, e.stats(denied)[denied])
	}
	if got := status(alice, one); got != http.StatusOK || e.stats(denied)[denied] == before {
		t.Errorf("alice got %d; shadow denied %s, then %s", got, before, e.stats(denied)[denied])
	}
	for name, c := range map[string]*http.Client{"alice": alice, "bob": bob} {
		if got := status(c, two); got != http.StatusForbidden {
			t.Errorf("%s got %d on the other inbound", name, got)
		}
	}
}

// TestDeletedDataplane: the listeners disappear with the Dataplane, and return with it.
func TestDeletedDataplane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, _ := application(t)
	port := freePort(t)
	w.httpDataplane("backend", port, service)
	w.apply(allowAlice)
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice := w.client("alice")
	eventually(t, "alice allowed", func() bool { return status(alice, port) == http.StatusOK })
	_, err := w.store.Apply(t.Context(), store.Batch{Ops: []store.Op{{Delete: resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "backend"}}}})
	must(t, err)
	eventually(t, "no listener", func() bool { return status(alice, port) == 0 })
	w.httpDataplane("backend", port, service)
	eventually(t, "alice allowed again", func() bool { return status(alice, port) == http.StatusOK })
	if rejected := e.stats("update_rejected"); len(rejected) == 0 {
		t.Error("no counters of refusals")
	} else {
		for name, n := range rejected {
			if n != "0" {
				t.Errorf("%s: %s", name, n)
			}
		}
	}
}
