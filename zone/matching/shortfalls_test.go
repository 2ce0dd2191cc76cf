package matching_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// TestShortfalls: what proxies report is of the policies that it names, and of no others. Where a report was cut, nobody
// says that the policies that it does not name take effect.
func TestShortfalls(t *testing.T) {
	insight := func(name, source, text string) *resources.Resource {
		spec, err := resources.NewSpec(resources.TypeDataplaneInsight,
			fmt.Appendf(nil, `{"metadata":{"problems":{%q:%q}}}`, source, text))
		if err != nil {
			t.Fatal(err)
		}
		return &resources.Resource{Key: resources.Key{Type: resources.TypeDataplaneInsight, Mesh: "default", Name: name},
			Labels: map[string]string{resources.LabelZone: "zone-1"}, Spec: spec}
	}
	all := []*resources.Resource{
		insight("a", "outbounds", "networking.outbound[0]: no MeshService; kri_mhc_default___health_: eventLogPath: the proxy cannot open /x"),
		insight("b", "policies", "kri_mm_default___metrics_: openTelemetry: no"), insight("c", "identity", "kri_mm_default___metrics_: none"),
	}
	for i := range 30 {
		all = append(all, insight(fmt.Sprintf("many-%d", i), "policies", "kri_mtr_default___trace_: no collector"))
	}
	got := matching.NewShortfalls(slices.Values(all))
	health, metrics := got["kri_mhc_default___health_"], got["kri_mm_default___metrics_"]
	if len(health) != 1 || health[0].String() != "on kri_dp_default_zone-1__a_: kri_mhc_default___health_: eventLogPath: the proxy cannot open /x" {
		t.Errorf("the MeshHealthCheck: %v", health)
	}
	if len(metrics) != 1 || !strings.Contains(metrics[0].String(), "__b_: ") {
		t.Errorf("the MeshMetric: %v", metrics)
	}
	if n := len(got["kri_mtr_default___trace_"]); n != 10 || len(got) != 3 {
		t.Errorf("%d of a policy without effect on 30 proxies, of %d policies", n, len(got))
	}
	spec, err := resources.NewSpec(resources.TypeMeshRetry, []byte(`{"to":[{"targetRef":{"kind":"Mesh"},"default":{"tcp":{"maxConnectAttempt":2}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	policy := matching.NewSelection(&resources.Resource{Key: resources.Key{Type: resources.TypeMeshRetry, Mesh: "default", Name: "retry"}, Spec: spec}, "", nil)
	dp, err := resources.NewSpec(resources.TypeDataplane, []byte(`{"networking":{"address":"192.0.2.1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	dataplane := &resources.Resource{Key: resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "a"}, Spec: dp}
	for text, enforced := range map[string]bool{
		"kri_mhc_default___health_: no":                                true,
		"networking.outbound[0]: no MeshService":                       true,
		"kri_mr_default___retry_: no":                                  false,
		"kri_mhc_default___health_: and so on" + resources.ProblemsCut: false,
	} {
		if why, known := policy.LeftOut(dataplane, matching.ProblemsOf(insight("a", "outbounds", text)), nil); (why == "" && known) != enforced {
			t.Errorf("%q: the MeshRetry has no effect: %q", text, why)
		}
	}
}
