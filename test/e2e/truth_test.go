package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// truth is a mesh whose answers are checked.
type truth struct{ *mesh }

// says runs causewayctl until it ends with the status and its output contains all words.
func (m *truth) says(s *cluster.Server, status int, words []string, args ...string) string {
	m.t.Helper()
	var said string
	m.eventually(fmt.Sprintf("causewayctl %v to say %q", args, words), func(ctx context.Context) error {
		out, err := m.CTL(ctx, s, nil, args...)
		said = string(out)
		if got := exitStatus(err); got != status {
			return fmt.Errorf("exit status %d, want %d: %s (%w)", got, status, out, err)
		}
		for _, word := range words {
			if !strings.Contains(said, word) {
				return fmt.Errorf("it does not say %q: %s", word, said)
			}
		}
		return nil
	})
	return said
}

const byOperator = "kri_mtp_default___by-operator_"

// TestRolloutKnowsWhatIsAway checks that what a disconnected Envoy enforces is unknown, on the zone and on the global:
// it keeps its last configuration, so a later change counts neither as enforced nor as not enforced. The same holds
// while its zone is away, and while it has not connected since the global started.
func TestRolloutKnowsWhatIsAway(t *testing.T) {
	t.Parallel()
	m := &truth{newMesh(t, "zone-1")}
	zone := m.zones["zone-1"]
	w := m.workload(zone, cluster.InboundConfig{Name: "http-port", Protocol: cluster.ProtocolHTTP})
	m.apply(m.global, operator(entry("allow", "Prefix", "spiffe://default.zone-1.mesh.local/")))
	status := []string{"rollout", "status", byOperator}
	for _, s := range []*cluster.Server{zone, m.global} {
		m.says(s, 0, []string{"enforced by 1 of 1 proxies"}, status...)
	}

	w.Proxy.Kill() // its zone cannot tell a disconnected Envoy from one that has ended
	m.apply(m.global, operator(entry("deny", "Prefix", "spiffe://default.zone-1.mesh.local/")))
	for _, s := range []*cluster.Server{zone, m.global} {
		m.says(s, 1, []string{"enforced by 0 of 1 proxies", "unknown for 1: default/backend-ns/backend",
			"(not connected since 20"}, status...)
	}
	m.says(m.global, 1, []string{"unknown for 1"}, append(status, "--wait", "--timeout", "2s")...)

	m.must(w.Proxy.Start(t.Context()))
	m.says(m.global, 0, []string{"enforced by 1 of 1 proxies"}, status...)

	// The zone is cut off, and has then not connected since the global started.
	zone.Pause()
	t.Cleanup(zone.Resume)
	m.global.Kill()
	m.must(m.global.Start(t.Context()))
	m.says(m.global, 1, []string{"acknowledged by 0 of 1 zones", "enforced by 0 of 1 proxies",
		"unknown for 1: default/backend-ns/backend of zone-1 (zone-1 not seen since 20",
		"zone-1 not seen since the server started at 20"}, status...)
	m.says(m.global, 1, []string{"problem", "not seen since the global started at 20",
		"when its newest certificate was issued"}, "doctor")
	zone.Resume()
	m.says(m.global, 0, []string{"enforced by 1 of 1 proxies"}, status...)
	m.says(m.global, 0, []string{"online, in sync", "all connected and in sync"}, "doctor")

	m.must(zone.Stop(t.Context()))
	m.says(m.global, 1, []string{"acknowledged by 1 of 1 zones", "enforced by 0 of 1 proxies",
		"(zone-1 offline since 20", "zone-1 offline since"}, status...)
	m.must(zone.Start(t.Context()))
	m.says(m.global, 0, []string{"enforced by 1 of 1 proxies"}, status...)
}

// TestVerdictsOfAProxyThatHangs checks that verdicts about an Envoy that is connected and takes nothing say that it may
// decide by what it had before, on the zone and on the global.
func TestVerdictsOfAProxyThatHangs(t *testing.T) {
	t.Parallel()
	m := &truth{newMesh(t, "zone-1")}
	zone := m.zones["zone-1"]
	w := m.workload(zone, cluster.InboundConfig{Name: "http-port", Protocol: cluster.ProtocolHTTP})
	m.apply(m.global, operator(entry("allow", "Prefix", "spiffe://default.zone-1.mesh.local/")))
	for _, s := range []*cluster.Server{zone, m.global} {
		m.says(s, 0, []string{"enforced by 1 of 1 proxies"}, "rollout", "status", byOperator)
	}
	asked := [][]string{
		{"explain", "--to", "kri_dp_default_zone-1_backend-ns_backend_", "--from", spiffeID("zone-1", "frontend")},
		{"why", spiffeID("zone-1", "frontend"), "kri_dp_default_zone-1_backend-ns_backend_"},
	}
	w.Proxy.Pause()
	t.Cleanup(w.Proxy.Resume)
	m.apply(m.global, operator(entry("deny", "Prefix", "spiffe://default.zone-1.mesh.local/")))
	const warning, counted = " has not acknowledged all that it should have", "1 proxy has not acknowledged all"
	m.says(zone, 1, []string{"waiting for proxies default/backend-ns/backend"}, "rollout", "status", byOperator)
	for _, s := range []*cluster.Server{zone, m.global} {
		for _, args := range asked {
			m.says(s, 1, []string{"denied by " + byOperator, warning, "it may decide by what it had before"}, args...)
		}
		m.says(s, 0, []string{counted}, "report", "access")
	}
	w.Proxy.Resume()
	for _, s := range []*cluster.Server{zone, m.global} {
		m.says(s, 0, []string{"enforced by 1 of 1 proxies"}, "rollout", "status", byOperator)
		for _, args := range asked {
			if said := m.says(s, 1, []string{"denied by " + byOperator}, args...); strings.Contains(said, warning) {
				t.Errorf("%s, once the proxy has everything: %s", s.Name(), said)
			}
		}
		if said := m.says(s, 0, nil, "report", "access"); strings.Contains(said, counted) {
			t.Errorf("%s, once the proxy has everything: %s", s.Name(), said)
		}
	}
}

// TestAnswersSayHowOldTheyAre checks that explain and inspect answer from the global's knowledge of a zone, and say
// since when that may be outdated.
func TestAnswersSayHowOldTheyAre(t *testing.T) {
	t.Parallel()
	m := &truth{newMesh(t, "zone-1")}
	zone := m.zones["zone-1"]
	m.client(zone, "frontend")
	const dataplane, id = "kri_dp_default_zone-1_default_frontend_",
		"spiffe://default.zone-1.mesh.local/ns/default/sa/frontend"
	m.apply(m.global, operator(entry("deny", "Prefix", "spiffe://default.zone-1.mesh.local/")))
	asked := map[string]struct {
		status int
		args   []string
	}{
		"explain":   {1, []string{"explain", "--to", dataplane, "--from", id}},
		"dataplane": {0, []string{"inspect", "dataplane", dataplane}},
		"policy":    {0, []string{"inspect", "policy", byOperator}},
	}
	for _, ask := range asked {
		m.says(m.global, ask.status, []string{"zone-1: online since 20", "it last reported its proxies at 20"},
			ask.args...)
	}
	m.must(zone.Stop(t.Context()))
	for _, ask := range asked {
		m.says(m.global, ask.status, []string{"zone-1: offline since 20", "its own resources are as they were then"},
			ask.args...)
	}
	// What is written now is shown, and the zone does not have it.
	m.apply(m.global, operator(entry("deny", "Prefix", "spiffe://default.zone-1.mesh.local/ns/")))
	for _, ask := range asked {
		m.says(m.global, ask.status, []string{"zone-1: offline since 20",
			"its MeshTrafficPermission may be older than what is shown"}, ask.args...)
	}
	m.must(m.global.Stop(t.Context()))
	m.must(m.global.Start(t.Context()))
	for _, ask := range asked {
		m.says(m.global, ask.status, []string{"zone-1: not seen since the global started at 20"}, ask.args...)
	}
}

// TestShadowReportKnowsWhatItDoesNot checks that the report is unknown if nothing was collected, or if the policy does
// not exist.
func TestShadowReportKnowsWhatItDoesNot(t *testing.T) {
	t.Parallel()
	m := &truth{newMesh(t)}
	strict := operator(entry("allowWithShadowDeny", "Prefix", "spiffe://legacy/"))
	for name, args := range map[string][]string{"zone-1": nil, "zone-2": {"--access-log", "als"}} {
		zone, err := m.StartZone(t.Context(), cluster.ZoneConfig{Name: name, Global: m.global, Args: args})
		m.must(err)
		m.zones[name] = zone
	}
	m.apply(m.global, strict)
	asked := []string{"report", "shadow", "--policy"}
	m.says(m.zones["zone-2"], 0, []string{"nothing that was seen since 20", " would be denied"},
		append(asked, byOperator)...)
	m.says(m.zones["zone-2"], 2, []string{"who would be denied is unknown: there is no MeshTrafficPermission"},
		append(asked, "kri_mtp_default___other_")...)
	m.says(m.zones["zone-2"], 2, []string{"who would be denied is unknown: there is no mesh nowhere"}, "report", "shadow",
		"--mesh", "nowhere")
	m.says(m.zones["zone-1"], 2, []string{"who would be denied is unknown", "without --access-log als"},
		append(asked, byOperator)...)
}
