package discovery

import (
	"slices"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// TestUnprovenCapture: a pod of a plugin is said not to be captured if its proxy has had its configuration for some time and
// the kubelet has not reached it, and never for less: not while the proxy waits for its configuration, nor once it has
// started, nor when the proxy of a running application starts again.
func TestUnprovenCapture(t *testing.T) {
	t.Parallel()
	byPlugin := injected
	byPlugin.CNI = true
	for name, c := range map[string]struct {
		spec           func() any
		begun, started bool
		settledAt      time.Duration // negative for never
		restartsAt     time.Duration
		told           time.Duration // zero for never
	}{
		"not captured":                       {settledAt: 0, told: provenWithin},
		"not captured, and configured later": {settledAt: 30 * time.Second, told: 30*time.Second + provenWithin},
		"the proxy starts again meanwhile":   {settledAt: 0, restartsAt: provenWithin - 2*time.Second, told: 2*provenWithin - 2*time.Second},
		"the proxy is not configured":        {settledAt: -1},
		"captured":                           {settledAt: 0, started: true},
		"the proxy of a running application": {settledAt: 0, begun: true},
		"captured by a container":            {settledAt: 0, spec: func() any { return specOfPods() }},
		"captured in an earlier form":        {settledAt: 0, spec: func() any { return earlierSpec(t, "") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			begin := time.Unix(0, 0)
			now := begin
			g.Now = func() time.Time { return now }
			g.Settled = func(dataplane resources.Key) bool {
				if dataplane != (resources.Key{Type: resources.TypeDataplane, Mesh: "default", Namespace: "shop", Name: "web-1"}) {
					t.Errorf("it asks for %s", dataplane)
				}
				return c.settledAt >= 0 && now.Sub(begin) >= c.settledAt
			}
			shown := func(restarts int) {
				app := m{"name": "app", "state": m{"waiting": m{"reason": "PodInitializing"}}}
				if c.begun {
					app["state"] = m{"running": m{"startedAt": "2026-01-01T00:00:00Z"}}
				}
				g.list(g.shop(pod(t, "web-1", "", false, func(metadata m) {
					metadata["spec"] = injectedSpec(&byPlugin)
					if c.spec != nil {
						metadata["spec"] = c.spec()
					}
					metadata["status"] = m{"phase": "Pending", "podIP": "10.0.0.1", "containerStatuses": []any{app}, "initContainerStatuses": []any{
						m{"name": "causeway-proxy", "started": c.started, "restartCount": restarts, "state": m{"running": m{"startedAt": "2026-01-01T00:00:00Z"}}}}}
				})))
				g.settled()
			}
			shown(0)
			told := time.Duration(0)
			for ; now.Sub(begin) < time.Minute; now = now.Add(proofsEach) {
				if c.restartsAt > 0 && now.Sub(begin) == c.restartsAt {
					shown(1)
				}
				g.checkProofs()
				g.settled()
				if slices.Contains(g.reasons[object{kind: "Pod", namespace: "shop", name: "web-1"}], ReasonNotCaptured) {
					told = now.Sub(begin)
					break
				}
			}
			if told != c.told {
				t.Errorf("it is told after %s, want %s", told, c.told)
			}
			c.started = true
			shown(0)
			g.checkProofs()
			if got := g.reasons[object{kind: "Pod", namespace: "shop", name: "web-1"}]; len(got) > 0 || len(g.awaited) > 0 {
				t.Errorf("once it has started: %q, %v", got, g.awaited)
			}
		})
	}
}
