package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/test/cluster"
)

const (
	// everybody lets all workloads call each other, on connections that last a tenth of a second, so that there are
	// always new handshakes.
	everybody = `{type: MeshTrafficPermission, mesh: default, name: everybody, spec: {default: {allow: [{spiffeId: {type: Prefix, value: "spiffe://"}}]}}}
---
{type: MeshTimeout, mesh: default, name: short-connections, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {maxConnectionDuration: 100ms}}}]}}`
	// maxCalls limits the calls in each direction.
	maxCalls = 20_000
)

// TestRotationUnderLoadAcrossZones lets two workloads in two zones call each other through the zones' ingresses, on
// ever new connections, during the rotation of one zone's authority. The new one signs as soon as both zones trust it,
// long before the end of --identity-overlap. No call fails, not even when the old authority is no longer trusted.
func TestRotationUnderLoadAcrossZones(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1", "zone-2")
	m.apply(m.global, everybody)
	callers := map[string]*cluster.Workload{}
	for name, other := range map[string]string{"zone-1": "zone-2", "zone-2": "zone-1"} {
		zone := m.zones[name]
		w, err := m.StartWorkload(t.Context(), cluster.WorkloadConfig{
			Zone: zone, Mesh: "default", Namespace: "backend-ns", Name: "backend", ServiceAccount: "backend",
			Labels:   map[string]string{"app": "backend"},
			Inbounds: []cluster.InboundConfig{{Name: "http", Protocol: cluster.ProtocolHTTP}},
			Outbounds: []cluster.OutboundConfig{{Name: "backend", BackendRef: map[string]any{
				"kind": "MeshService", "labels": map[string]any{"kuma.io/display-name": "backend", "kuma.io/zone": other},
			}}},
		})
		m.must(err)
		t.Cleanup(w.Close)
		callers[name] = w
		_, err = m.StartIngress(t.Context(), zone, "ingress")
		m.must(err)
		m.apply(zone, serviceOfBackend)
	}
	for _, w := range callers {
		m.answers(w, http.StatusOK)
	}
	load := startLoad(t.Context(), callers)
	defer load.stop()
	zone := m.zones["zone-1"]
	next := m.rotate(zone)
	m.eventually("the new authority to sign",
		func(ctx context.Context) error { return m.inState(ctx, zone, next, "signing") })
	m.eventually("the workload's certificate to be one of the new authority", func(ctx context.Context) error {
		var insight struct {
			MTLS struct{ CertificateRegenerations int }
		}
		err := zone.API.Get(ctx, "/meshes/default/dataplane-insights/backend?namespace=backend-ns", &insight)
		if err == nil && insight.MTLS.CertificateRegenerations < 2 {
			err = errNotYet
		}
		return err
	})
	load.more(t, 50)
	m.retireAccepted(zone)
	load.more(t, 50)
	load.stop()
	if failures, sent := load.result(); len(failures) > 0 {
		t.Errorf("%d of %d calls failed, the first: %s", len(failures), sent, failures[0])
	} else {
		t.Logf("%d calls", sent)
	}
}

// TestRotationWaitsForZonesThatAreAway checks that a rotation waits for absent zones for at most --identity-overlap,
// and that keys list says so, then and afterwards.
func TestRotationWaitsForZonesThatAreAway(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	zone := m.startZoneWith("zone-1", "--identity-overlap", "15s")
	away := m.startZoneWith("zone-2")
	m.must(away.Stop(t.Context()))
	m.eventually("the global to notice", func(ctx context.Context) error {
		out, err := m.CTL(ctx, m.global, nil, "get", "zones")
		if err == nil && !strings.Contains(string(out), "offline") {
			err = errNotYet
		}
		return err
	})
	next := m.rotate(zone)
	notes := func(state, want string) {
		t.Helper()
		m.eventually("keys list to say: "+want, func(ctx context.Context) error {
			out, err := m.CTL(ctx, zone, nil, "keys", "list")
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, next) && strings.Contains(line, state) && strings.Contains(line, want) {
					return nil
				}
			}
			return fmt.Errorf("%s", out)
		})
	}
	notes("next", "waits for zone-2, offline since")
	notes("signing", "did not wait for zone-2, offline since")
	_, err := m.CTL(t.Context(), m.global, nil, "keys", "rotate", "identity", "--zone", "zone-1")
	if err == nil || !strings.Contains(err.Error(), "with the HTTP API of zone-1") {
		t.Errorf("the global says %v", err)
	}
}

// rotate begins a rotation and returns the id of the next authority.
func (m *mesh) rotate(zone *cluster.Server) string {
	m.t.Helper()
	out, err := m.CTL(m.t.Context(), zone, nil, "keys", "rotate", "identity", "--zone", zone.Name(), "-o", "json")
	m.must(err)
	var list api.SigningKeyList
	m.must(json.Unmarshal(out, &list))
	return list.New
}

func (m *mesh) inState(ctx context.Context, zone *cluster.Server, id, state string) error {
	out, err := m.CTL(ctx, zone, nil, "keys", "list", "-o", "json")
	if err != nil {
		return err
	}
	var list api.SigningKeyList
	if err := json.Unmarshal(out, &list); err != nil {
		return err
	}
	for _, k := range list.Keys {
		if k.ID == id && k.State == state {
			return nil
		}
	}
	return fmt.Errorf("%s", out)
}

// load makes calls from several workloads, one after the other for each, until it is stopped or has made maxCalls.
type load struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	sent     map[string]int // answered calls, by caller; guarded by mu
	failures []string       // guarded by mu
}

func startLoad(ctx context.Context, callers map[string]*cluster.Workload) *load {
	l := &load{sent: map[string]int{}}
	l.ctx, l.cancel = context.WithCancel(ctx)
	for name, w := range callers {
		l.wg.Go(func() {
			for range maxCalls {
				if l.ctx.Err() != nil {
					return
				}
				status, body, err := w.Call(context.WithoutCancel(l.ctx), "backend", "/") // not cancelled
				l.note(name, status, body, err)
			}
		})
	}
	return l
}

func (l *load) note(name string, status int, body string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[name]++
	if err != nil || status != http.StatusOK {
		l.failures = append(l.failures, fmt.Sprintf("from %s: %d %.200s %v", name, status, body, err))
	}
}

// more waits until each caller has made n more calls.
func (l *load) more(t *testing.T, n int) {
	t.Helper()
	counts := func() map[string]int {
		l.mu.Lock()
		defer l.mu.Unlock()
		out := map[string]int{}
		for name, sent := range l.sent {
			out[name] = sent
		}
		return out
	}
	before := counts()
	err := cluster.Until(t.Context(), patience, "more calls", func(context.Context) error {
		for name, sent := range counts() {
			if sent < before[name]+n {
				return fmt.Errorf("%s has made %d", name, sent-before[name])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (l *load) stop() {
	l.cancel()
	l.wg.Wait()
}

func (l *load) result() (failures []string, sent int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.sent {
		sent += n
	}
	return l.failures, sent
}
