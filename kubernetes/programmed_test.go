package kubernetes

import (
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

// TestProgrammedSaysWhatIsKnown checks that the condition is True only where all are known to have the resource, and that
// it names who does not, or of whom that is unknown, with since when and why.
func TestProgrammedSaysWhatIsKnown(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	of := func(change func(r *tracker.Rollout)) *tracker.Rollout {
		r := &tracker.Rollout{Type: resources.TypeMeshTimeout, Zones: tracker.RolloutZones{Acknowledged: 2, Total: 2},
			Proxies: tracker.RolloutProxies{Enforced: 3, Total: 3}}
		change(r)
		return r
	}
	const has = "acknowledged by 2 of 2 zones; enforced by 3 of 3 proxies"
	for _, tt := range []struct {
		rollout                 *tracker.Rollout
		status, reason, message string
	}{
		{nil, resources.ConditionUnknown, "Unknown", "the server does not know how far it has come"},
		{of(func(*tracker.Rollout) {}), resources.ConditionTrue, "Programmed", has},
		{of(func(r *tracker.Rollout) { r.Proxies = tracker.RolloutProxies{} }), resources.ConditionTrue, "Programmed",
			"acknowledged by 2 of 2 zones; it selects no known proxy"},
		{of(func(r *tracker.Rollout) { *r = tracker.Rollout{Type: resources.TypeSecret} }), resources.ConditionTrue, "Programmed",
			"it is for no other server"},
		{of(func(r *tracker.Rollout) { r.Zones.Disabled = []string{"zone-3"} }), resources.ConditionUnknown, "Disabled",
			has + "; disabled is zone-3: what its proxies do now is unknown"},
		{of(func(r *tracker.Rollout) { r.Zones.Away = []tracker.RolloutOffline{{Zone: "zone-1", Since: at}} }),
			resources.ConditionUnknown, "Offline",
			has + "; zone-1 offline since 2026-11-20T10:00:00Z: what its proxies do now is unknown"},
		{of(func(r *tracker.Rollout) {
			r.Zones.Away = []tracker.RolloutOffline{{Zone: "zone-1", Since: at, Unheard: true}}
		}), resources.ConditionUnknown, "Offline",
			has + "; zone-1 not heard of since 2026-11-20T10:00:00Z: what its proxies do now is unknown"},
		{of(func(r *tracker.Rollout) {
			r.Proxies.Enforced, r.Proxies.Unknown = 2, []tracker.ProxyUnknown{{Name: "backend", Reason: "not connected", Since: at}}
		}), resources.ConditionUnknown, "ProxiesUnknown", "acknowledged by 2 of 2 zones; enforced by 2 of 3 proxies; " +
			"unknown for 1 proxies, backend among them: not connected since 2026-11-20T10:00:00Z"},
		{of(func(r *tracker.Rollout) {
			r.Zones.Away = []tracker.RolloutOffline{{Zone: "zone-1", Since: at}}
			r.Zones.Pending = []string{"zone-2"}
		}), resources.ConditionFalse, "Pending", has + "; not acknowledged yet by zone-2; " +
			"zone-1 offline since 2026-11-20T10:00:00Z: what its proxies do now is unknown"},
		{of(func(r *tracker.Rollout) { r.Proxies.Enforced = 1 }), resources.ConditionFalse, "Pending",
			"acknowledged by 2 of 2 zones; enforced by 1 of 3 proxies"},
		{of(func(r *tracker.Rollout) {
			r.Source = &tracker.RolloutOffline{Zone: "etcd", Since: at, Reason: "no answer"}
		}),
			resources.ConditionUnknown, "SourceOffline", has +
				"; since 2026-11-20T10:00:00Z it is unknown whether there is a newer one, or this one still: no answer"},
		{of(func(r *tracker.Rollout) {
			r.Zone, r.Zones, r.Source = "zone-1", tracker.RolloutZones{}, &tracker.RolloutOffline{Zone: "global", Since: at}
		}), resources.ConditionUnknown, "SourceOffline", "enforced by 3 of 3 proxies of zone zone-1; " +
			"global offline since 2026-11-20T10:00:00Z: whether it has a newer one is unknown"},
		{of(func(r *tracker.Rollout) {
			r.Zone, r.Zones = "zone-1", tracker.RolloutZones{}
			r.Source = &tracker.RolloutOffline{Zone: "global", Since: at, Removed: true}
		}), resources.ConditionFalse, "Removed", "enforced by 3 of 3 proxies of zone zone-1; the global has it no more, " +
			"as is known since 2026-11-20T10:00:00Z: the removal is held until an operator accepts it"},
	} {
		want := resources.Condition{Type: conditionProgrammed, Status: tt.status, Reason: tt.reason, Message: tt.message}
		if got := programmed(tt.rollout, nil); got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}
