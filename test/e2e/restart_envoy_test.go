package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
)

const servicesOfRestart = `{type: MeshService, mesh: default, namespace: backend-ns, name: backend, spec: {
  selector: {dataplaneLabels: {matchLabels: {app: backend}}}, ports: [{name: http-port, port: 80, targetPort: http-port, appProtocol: http}]}}
`

// restartEnvoys are two Envoys of a zone, one of which calls the other.
type restartEnvoys struct {
	*enforcement
	caller *cluster.Workload
	calls  atomic.Int64
}

// TestEnvoysNoticeNoRestart stops, kills and restarts a zone during requests from Envoy to Envoy and connections to a
// TCP inbound. No request fails. Both Envoys reconnect and receive nothing: no listener, cluster, route, endpoint,
// filter or secret is updated, no certificate is replaced, nothing drains.
func TestEnvoysNoticeNoRestart(t *testing.T) {
	t.Parallel()
	r := &restartEnvoys{enforcement: &enforcement{mesh: newMesh(t, "zone-1")}}
	r.zone1 = r.zones["zone-1"]
	r.start()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var g errgroup.Group
	g.Go(func() error { return r.keepAsking(ctx) })
	g.Go(func() error { return r.keepEchoing(ctx) })
	for round, kill := range []bool{false, true} {
		before := r.told()
		if kill {
			r.onDisk(r.zone1)
			r.zone1.Kill()
		} else {
			r.must(r.zone1.Stop(t.Context()))
		}
		calls := r.calls.Load()
		r.eventually("calls without a zone", func(context.Context) error { return more(r.calls.Load() - calls) })
		r.must(r.zone1.Start(t.Context()))
		r.eventually("both Envoys to ask for their identities", r.bothAreBack)
		// A change arrives after everything requested earlier, and so ends the wait for it.
		mark := fmt.Sprint("after-restart-", round)
		r.apply(r.zone1, `{type: MeshTrafficPermission, mesh: default, namespace: backend-ns, name: mark, spec: {targetRef: {kind: Dataplane, labels: {app: backend}, sectionName: http-port},
  rules: [{default: {allow: [{spiffeId: {type: Exact, value: "spiffe://nobody/`+mark+`"}}]}}]}}`)
		r.eventually("the change to arrive", func(ctx context.Context) error {
			config, err := r.backend.Proxy.ConfigDump(ctx)
			if err == nil && !strings.Contains(config, mark) {
				err = errNotYet
			}
			return err
		})
		r.nothingBut(before, "self_inbound_dp_http-port_rbac_http")
		if sent := r.sent(); !maps.Equal(sent, map[string]string{"ecds": "1"}) {
			t.Errorf("killed %t: the zone sent %v, want one filter", kill, sent)
		}
		calls = r.calls.Load()
		r.eventually("calls with the zone", func(context.Context) error { return more(r.calls.Load() - calls) })
	}
	stop()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%d calls", r.calls.Load())
}

// more checks that there were enough calls to count as traffic.
func more(calls int64) error {
	if calls < 50 {
		return errNotYet
	}
	return nil
}

// start starts both, and widens the access, so that the TCP filters differ from those that their chain was created
// with.
func (r *restartEnvoys) start() {
	r.t.Helper()
	r.backend = r.workload(r.zone1, cluster.InboundConfig{Name: "http-port", Protocol: cluster.ProtocolHTTP},
		cluster.InboundConfig{Name: "tcp-port", Protocol: cluster.ProtocolTCP})
	r.apply(r.zone1, servicesOfRestart)
	var err error
	r.caller, err = r.StartWorkload(r.t.Context(), cluster.WorkloadConfig{
		Zone: r.zone1, Mesh: "default", Namespace: "default", Name: "caller", ServiceAccount: "caller",
		Inbounds: []cluster.InboundConfig{{Name: "http-port", Protocol: cluster.ProtocolHTTP}},
		Outbounds: []cluster.OutboundConfig{{Name: "backend", BackendRef: map[string]any{"kind": "MeshService",
			"labels": map[string]any{"kuma.io/display-name": "backend"}}}},
	})
	r.must(err)
	r.t.Cleanup(r.caller.Close)
	r.apply(r.zone1, owner("", entry("allow", "Exact", spiffeID("zone-1", "caller"))))
	r.answered(r.caller, "/", "backend in zone-1")
	r.frontend, _ = r.client(r.zone1, "frontend")
	r.apply(r.zone1, strings.Replace(owner("", entry("allow", "Exact", spiffeID("zone-1", "frontend"))), "name: ",
		"name: more-", 1))
	r.eventually("an echo",
		func(ctx context.Context) error { return r.frontend.Echo(ctx, r.backend.Inbound("tcp-port").Port) })
}

// pace is the pause between the requests that go on during a fault: what loses one lasts longer, for a connection that
// drains or a listener that is gone is not back so soon. Without a pause, they took most of the processor time of their
// tests, from the servers under test as well.
const pace = 4 * time.Millisecond

func (r *restartEnvoys) keepAsking(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; n++ {
		status, body, err := r.caller.Call(ctx, "backend", "/")
		if ctx.Err() == nil && (err != nil || status != http.StatusOK) {
			return fmt.Errorf("request %d: %d %.200s, %w", n, status, body, err)
		}
		r.calls.Add(1)
		during(ctx, pace)
	}
	return nil
}

func (r *restartEnvoys) keepEchoing(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; n++ {
		if err := r.frontend.Echo(ctx, r.backend.Inbound("tcp-port").Port); err != nil && ctx.Err() == nil {
			return fmt.Errorf("connection %d: %w", n, err)
		}
		during(ctx, pace)
	}
	return nil
}

// told returns the statistics of both Envoys that change when they receive an update, or when something drains.
func (r *restartEnvoys) told() map[string]uint64 {
	r.t.Helper()
	all := map[string]uint64{}
	for _, p := range []*cluster.Proxy{r.backend.Proxy, r.caller.Proxy} {
		stats, err := p.Stats(r.t.Context(), `(update_success|update_rejected|config_reload|config_fail|_draining|drain_close|ssl_context_update_by_sds|listener_manager\.listener_\w+|cluster_manager\.cluster_(added|modified|removed))$`)
		r.must(err)
		for name, n := range stats {
			all[p.Name()+" "+name] = n
		}
	}
	for _, part := range []string{"lds.update_success", "cds.update_success", "rds", "identity_cert", "identity_trust",
		"ssl_context_update_by_sds", "extension_config_discovery", "total_filter_chains_draining", "http-port_rbac_http"} {
		found := false
		for name := range all {
			found = found || strings.Contains(name, part)
		}
		if !found {
			r.t.Errorf("there is no statistic of %s", part)
		}
	}
	return all
}

// nothingBut checks that no statistics have changed except those of a filter.
func (r *restartEnvoys) nothingBut(before map[string]uint64, filter string) {
	r.t.Helper()
	for name, n := range r.told() {
		if was, there := before[name]; (!there || was != n) && !strings.Contains(name, filter) {
			r.t.Errorf("the restart moved %s from %d to %d", name, was, n)
		}
	}
}

// bothAreBack checks that both Envoys are connected to the zone with their previous identities.
func (r *restartEnvoys) bothAreBack(ctx context.Context) error {
	if used, err := r.zone1.Metric(ctx, `causeway_identity_kept_total{outcome="used"}`); err != nil || used < 2 {
		return fmt.Errorf("%v came back: %w", used, errNotYet)
	}
	for _, p := range []*cluster.Proxy{r.backend.Proxy, r.caller.Proxy} {
		stats, err := p.Stats(ctx, `^control_plane\.connected_state$`)
		if err != nil || stats["control_plane.connected_state"] != 1 {
			return fmt.Errorf("%s: %v: %w", p.Name(), stats, errNotYet)
		}
	}
	return nil
}

// sent returns the number of responses of each type since the start of the zone.
func (r *restartEnvoys) sent() map[string]string {
	r.t.Helper()
	page, err := r.zone1.Diagnostics(r.t.Context(), "/metrics")
	r.must(err)
	out := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if rest, ok := strings.CutPrefix(line, `causeway_xds_responses_total{type="`); ok {
			kind, count, _ := strings.Cut(strings.TrimSpace(rest), `"} `)
			out[kind] = count
		}
	}
	return out
}
