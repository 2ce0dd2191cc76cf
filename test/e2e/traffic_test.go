package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// churns is the number of changes that TestTrafficIsUndisturbed makes during requests.
const churns = 30

// TestTrafficIsUndisturbed checks that while policies come and go, and the zone and the global restart, no request of a
// permanently allowed client fails, and none of a permanently denied client gets through.
func TestTrafficIsUndisturbed(t *testing.T) {
	t.Parallel()
	e := &enforcement{mesh: newMesh(t, "zone-1")}
	e.zone1 = e.zones["zone-1"]
	e.backend = e.workload(e.zone1, cluster.InboundConfig{Name: "http-port", Protocol: cluster.ProtocolHTTP})
	var stranger *cluster.Client
	e.frontend, e.frontendID = e.client(e.zone1, "frontend")
	stranger, _ = e.client(e.zone1, "stranger")
	e.apply(e.zone1, owner("", entry("allow", "Exact", spiffeID("zone-1", "frontend"))))
	e.becomes(e.frontend, "http-port", true, ownerKRI)

	http2 := cluster.NewClient(e.frontendID, true)
	defer http2.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var g errgroup.Group
	g.Go(func() error { return e.keepCalling(ctx, e.frontend, http.StatusOK) })
	g.Go(func() error { return e.keepCalling(ctx, http2, http.StatusOK) })
	g.Go(func() error { return e.keepCalling(ctx, stranger, http.StatusForbidden) })
	for i := range churns {
		e.apply(e.global, operator(entry("deny", "Exact", fmt.Sprintf("spiffe://nobody/%d", i))))
		switch i {
		case churns / 3:
			e.zone1.Kill()
			e.must(e.zone1.Start(t.Context()))
		case churns / 2:
			e.must(e.global.Stop(t.Context()))
			e.must(e.global.Start(t.Context()))
		}
	}
	e.eventually("the last change", func(ctx context.Context) error {
		config, err := e.backend.Proxy.ConfigDump(ctx)
		if err == nil && !strings.Contains(config, fmt.Sprintf("spiffe://nobody/%d", churns-1)) {
			err = errNotYet
		}
		return err
	})
	stop()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// keepCalling expects the same status for every call until ctx ends, and more than a few calls.
func (e *enforcement) keepCalling(ctx context.Context, c *cluster.Client, want int) error {
	port := e.backend.Inbound("http-port").Port
	calls := 0
	for ctx.Err() == nil {
		status, _, err := c.Get(ctx, port, "/")
		switch {
		case ctx.Err() != nil:
		case err != nil:
			return fmt.Errorf("%s, call %d: %w", c.ID(), calls, err)
		case status != want:
			return fmt.Errorf("%s, call %d: status %d, want %d", c.ID(), calls, status, want)
		}
		calls++
	}
	if calls < churns {
		return fmt.Errorf("%s made only %d calls", c.ID(), calls)
	}
	return nil
}

// TestHTTP2Application checks that an HTTP/2 inbound accepts clients of either version, and speaks HTTP/2 to the
// application.
func TestHTTP2Application(t *testing.T) {
	t.Parallel()
	e := &enforcement{mesh: newCluster(t)}
	e.zone1 = e.startZone("zone-1")
	e.backend = e.workload(e.zone1, cluster.InboundConfig{Name: "grpc-port", Protocol: cluster.ProtocolHTTP2})
	e.frontend, e.frontendID = e.client(e.zone1, "frontend")
	e.apply(e.zone1, owner("", entry("allow", "Exact", spiffeID("zone-1", "frontend"))))
	e.becomes(e.frontend, "grpc-port", true, ownerKRI)
	http2 := cluster.NewClient(e.frontendID, true)
	defer http2.Close()
	e.becomes(http2, "grpc-port", true, ownerKRI)
	stats, err := e.backend.Proxy.Stats(t.Context(), `^cluster\.self_inbound_dp_grpc-port\.upstream_cx_http(1|2)_total$`)
	e.must(err)
	if stats["cluster.self_inbound_dp_grpc-port.upstream_cx_http1_total"] != 0 ||
		stats["cluster.self_inbound_dp_grpc-port.upstream_cx_http2_total"] == 0 {
		t.Errorf("connections to the application: %v, want only HTTP/2", stats)
	}
}

// TestStuckZone checks that a zone that hangs does not affect the others, and catches up afterwards.
func TestStuckZone(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1", "zone-2")
	healthy, stuck := m.zones["zone-1"], m.zones["zone-2"]
	ledger := newLedger(m.global, "g", "meshtrafficpermissions", permissionOf, permissionValue)
	agree := func(s *cluster.Server) {
		m.eventually(s.Name()+" to agree", func(ctx context.Context) error { return ledger.agrees(ctx, s) })
	}
	stuck.Pause()
	t.Cleanup(stuck.Resume)
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	m.must(ledger.write(ctx, rand.New(rand.NewPCG(*crashSeed, 1))))
	agree(healthy) // while the other one still hangs
	stuck.Resume()
	agree(stuck)
}

// TestMeshesAreApart checks that an identity of one mesh is worthless in another, even if the same zone issued it and a
// policy there names it.
func TestMeshesAreApart(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1")
	zone := m.zones["zone-1"]
	m.apply(m.global, "{type: Mesh, name: other}")
	m.must(zone.WaitMesh(t.Context(), "other"))
	stranger, _ := m.client(zone, "frontend")
	m.apply(m.global, fmt.Sprintf(`{type: MeshTrafficPermission, mesh: other, name: all, spec: {default: {allow: [
  {spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/"}}, {spiffeId: {type: Prefix, value: %q}}]}}}`,
		"spiffe://"+cluster.TrustDomain("other", "zone-1")+"/"))
	backend, err := m.StartWorkload(t.Context(), cluster.WorkloadConfig{
		Zone: zone, Mesh: "other", Name: "backend",
		Inbounds: []cluster.InboundConfig{{Name: "http-port", Protocol: cluster.ProtocolHTTP}},
	})
	m.must(err)
	t.Cleanup(backend.Close)
	id, err := cluster.RegisterClient(t.Context(), cluster.WorkloadConfig{Zone: zone, Mesh: "other", Name: "frontend"},
		"zone-1")
	m.must(err)
	if want := "spiffe://other.zone-1.mesh.local/workload/frontend"; id.SpiffeID != want {
		t.Errorf("the identity is %s, want %s", id.SpiffeID, want)
	}
	native := cluster.NewClient(id, false)
	defer native.Close()
	m.eventually("the mesh's own client to be let in", func(ctx context.Context) error {
		v, err := backend.Judge(ctx, native, "http-port", "/")
		if err == nil && !v.Allowed() {
			err = fmt.Errorf("%s", v)
		}
		return err
	})
	before := backend.Inbound("http-port").Count()
	if status, _, err := stranger.Get(t.Context(), backend.Inbound("http-port").Port, "/"); err == nil &&
		status == http.StatusOK {
		t.Error("a client of another mesh was let in")
	}
	if backend.Inbound("http-port").Count() != before {
		t.Error("a client of another mesh reached the application")
	}
}

// TestProxyBeforeItsDataplane checks that an Envoy that starts too early gets its listeners once its Dataplane is
// written, loses them when it is deleted, and shows as connected in between.
func TestProxyBeforeItsDataplane(t *testing.T) {
	t.Parallel()
	m := newCluster(t)
	zone := m.startZone("zone-1")
	proxy, err := m.StartProxy(t.Context(), cluster.ProxyConfig{Zone: zone, Mesh: "default", Dataplane: "late"})
	m.must(err)
	port, err := porttest.Free()
	m.must(err)
	const path = "/meshes/default/dataplanes/late"
	m.must(zone.API.Put(t.Context(), path, map[string]any{
		"type": "Dataplane", "mesh": "default", "name": "late", "networking": map[string]any{"address": "127.0.0.1",
			"inbound": []any{
				map[string]any{"name": "http-port", "port": port, "servicePort": 1, "protocol": "http"},
			}},
	}))
	m.must(proxy.WaitListeners(t.Context(), port))
	m.eventually("the proxy to show as connected", func(ctx context.Context) error {
		var overview struct {
			Insight struct {
				Subscriptions []struct {
					ConnectTime    time.Time  `json:"connectTime"`
					DisconnectTime *time.Time `json:"disconnectTime"`
				} `json:"subscriptions"`
			} `json:"dataplaneInsight"`
		}
		if err := zone.API.Get(ctx, path+"/_overview", &overview); err != nil {
			return err
		}
		for _, s := range overview.Insight.Subscriptions {
			if !s.ConnectTime.IsZero() && s.DisconnectTime == nil {
				return nil
			}
		}
		return fmt.Errorf("subscriptions: %+v", overview.Insight.Subscriptions)
	})
	m.must(zone.API.Delete(t.Context(), path))
	m.eventually("the listener to go", func(ctx context.Context) error {
		stats, err := proxy.Stats(ctx, `^listener_manager\.total_listeners_active$`)
		if err == nil && stats["listener_manager.total_listeners_active"] != 0 {
			err = errNotYet
		}
		return err
	})
}

// TestInspect checks that the zone and the global list the policies on an inbound, in the order of evaluation.
func TestInspect(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1")
	zone := m.zones["zone-1"]
	m.workload(zone, cluster.InboundConfig{Name: "http-port", Protocol: cluster.ProtocolHTTP},
		cluster.InboundConfig{Name: "tcp-port", Protocol: cluster.ProtocolTCP})
	m.apply(m.global, operator(entry("deny", "Exact", spiffeID("zone-1", "frontend"))))
	m.apply(zone, owner("http-port", entry("allow", "Prefix", "spiffe://default.zone-1.mesh.local/")))
	m.eventually("both policies on http-port, one on tcp-port", func(ctx context.Context) error {
		for inbound, want := range map[string]string{"http-port": operatorKRI + " " + ownerKRI, "tcp-port": operatorKRI} {
			for s, dataplane := range map[*cluster.Server]string{
				zone:     "backend/_inbounds/%s/_policies?namespace=backend-ns",
				m.global: hashing.Name("default", "backend", "zone-1", "backend-ns") + "/_inbounds/%s/_policies",
			} {
				got, err := inspected(ctx, s, fmt.Sprintf(dataplane, "kri_dp_default_zone-1_backend-ns_backend_"+inbound))
				if err != nil {
					return err
				}
				if got != want {
					return fmt.Errorf("%s says that on %s there is %q, want %q", s.Name(), inbound, got, want)
				}
			}
		}
		return nil
	})
}

// inspected returns the KRIs of the rules on an inbound, in order.
func inspected(ctx context.Context, s *cluster.Server, path string) (string, error) {
	var answer struct {
		Policies []struct {
			Kind  string
			Rules []struct {
				KRI string `json:"kri"`
			}
		}
	}
	err := s.API.Get(ctx, "/meshes/default/dataplanes/"+path, &answer)
	if err != nil {
		return "", err
	}
	var kris []string
	for _, p := range answer.Policies {
		if p.Kind != "MeshTrafficPermission" {
			continue
		}
		for _, r := range p.Rules {
			kris = append(kris, r.KRI)
		}
	}
	return strings.Join(kris, " "), nil
}
