package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// gauges are the metrics of one server at one moment, by name and labels as exposed.
type gauges map[string]float64

func readGauges(ctx context.Context, s *cluster.Server) (gauges, error) {
	raw, err := s.Diagnostics(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	all := gauges{}
	for _, line := range strings.Split(string(raw), "\n") {
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		all[line[:at]] = value
	}
	return all, nil
}

// sum adds the metrics with the name and all the labels. It fails if there is none.
func (g gauges) sum(name string, labels ...string) (float64, error) {
	total, found := 0.0, false
series:
	for series, value := range g {
		if n, _, _ := strings.Cut(series, "{"); n != name {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(series, label) {
				continue series
			}
		}
		total, found = total+value, true
	}
	if !found {
		return 0, fmt.Errorf("there is no %s with %q", name, labels)
	}
	return total, nil
}

// TestMetricsMove checks that each metric about the sync exists, and changes exactly when it has a reason.
func TestMetricsMove(t *testing.T) {
	t.Parallel()
	m := newCluster(t)
	var err error
	m.global, err = m.StartGlobal(t.Context(), cluster.GlobalConfig{Anonymous: true})
	m.must(err)
	link, err := cluster.NewLink(t.Context(), m.global.Address("kds"))
	m.must(err)
	t.Cleanup(func() { _ = link.Close() })
	for _, name := range []string{"ab", "a"} {
		m.zones[name], err = m.StartZone(t.Context(), cluster.ZoneConfig{Name: name, Global: m.global, Link: link})
		m.must(err)
		m.must(m.zones[name].WaitMesh(t.Context(), "default"))
	}
	m.workload(m.zones["ab"], cluster.InboundConfig{Name: "http-port", Protocol: cluster.ProtocolHTTP})
	zone := m.zones["ab"]

	m.moves(m.global, func() {
		m.apply(m.global, operator(entry("allow", "Exact", "spiffe://a/b")))
	}, []string{"causeway_kds_messages_total", `type="MeshTrafficPermission"`, `event="acknowledged"`},
		[]string{"causeway_kds_resources_total", `type="MeshTrafficPermission"`, `event="sent"`},
		[]string{"causeway_kds_sent_bytes_total", `type="MeshTrafficPermission"`},
		[]string{"causeway_kds_encodings_total", `result="hit"`}, // the second zone gets what was encoded for the first
		[]string{"causeway_kds_propagation_seconds_count"},
		[]string{"causeway_store_apply_duration_seconds_count"},
		[]string{"causeway_store_changelog_commits"},
		[]string{"causeway_store_revision"})
	m.moves(zone, func() {
		m.apply(m.global, operator(entry("allow", "Exact", "spiffe://a/c")))
	}, []string{"causeway_xds_propagation_seconds_count"}, []string{"causeway_xds_acks_total"},
		[]string{"causeway_xds_responses_total"},
		[]string{"causeway_kds_resources_total", `event="written"`})
	m.shows(zone, 1, "causeway_xds_proxies")
	m.shows(zone, 1, "causeway_xds_proxies_by_state", `state="settled"`)

	foreign := m.foreignZone("foreign", nil)
	m.moves(m.global, func() {
		m.must(foreign.Offer(foreignService("broken", `{"ports":[{"port":700000}]}`)))
	}, []string{"causeway_kds_refusals_total", `type="MeshService"`}, []string{"causeway_kds_refused", `zone="foreign"`,
		`type="MeshService"`})

	link.Set(cluster.Weather{Cut: true})
	m.shows(m.global, 0, "causeway_kds_connected", `zone="ab"`)
	m.moves(m.global, func() {
		m.apply(m.global, operator(entry("allow", "Exact", "spiffe://a/d")))
	}, []string{"causeway_kds_lag_seconds", `zone="ab"`, `direction="toZone"`},
		[]string{"causeway_kds_lag_revisions", `zone="ab"`, `direction="toZone"`})
	const byType = `causeway_kds_type_lag_seconds{direction="toZone",type="MeshTrafficPermission",zone="ab"}`
	for path, want := range map[string]bool{"/metrics?detail=types": true, "/metrics": false} {
		text, err := m.global.Diagnostics(t.Context(), path)
		m.must(err)
		if strings.Contains(string(text), byType) != want {
			t.Errorf("%s: %s is there: %t", path, byType, !want)
		}
	}
	m.moves(m.global, func() { link.Set(cluster.Weather{}) }, []string{"causeway_kds_sessions_total", `zone="ab"`},
		[]string{"causeway_kds_connected", `zone="ab"`})
	m.shows(m.global, 0, "causeway_kds_lag_seconds", `zone="ab"`)
	m.shows(m.global, 0, "causeway_kds_lag_revisions", `zone="ab"`)
}

// moves calls do, and waits until each of the metrics, a name and labels, has increased.
func (m *mesh) moves(s *cluster.Server, do func(), metrics ...[]string) {
	m.t.Helper()
	before, err := readGauges(m.t.Context(), s)
	m.must(err)
	do()
	m.eventually("the metrics to move", func(ctx context.Context) error {
		after, err := readGauges(ctx, s)
		if err != nil {
			return err
		}
		for _, metric := range metrics {
			was, _ := before.sum(metric[0], metric[1:]...) // none before is none
			is, err := after.sum(metric[0], metric[1:]...)
			if err != nil {
				return err
			}
			if is <= was {
				return fmt.Errorf("%q was %v and is %v", metric, was, is)
			}
		}
		return nil
	})
}

// shows waits until a metric has a value.
func (m *mesh) shows(s *cluster.Server, want float64, name string, labels ...string) {
	m.t.Helper()
	m.eventually(name, func(ctx context.Context) error {
		now, err := readGauges(ctx, s)
		if err != nil {
			return err
		}
		is, err := now.sum(name, labels...)
		if err == nil && is != want {
			err = fmt.Errorf("%s with %q is %v, want %v", name, labels, is, want)
		}
		return err
	})
}
