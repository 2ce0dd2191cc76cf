package bolt

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	disk := &failing{}
	config := Config{Path: t.TempDir() + "/store.db", Registerer: registry, Commit: disk.commit}
	s := open(t, config)
	storetest.Apply(t, s, storetest.Put(kilobyte(1, 1)))
	storetest.Apply(t, s, storetest.Put(kilobyte(2, 1)))
	storetest.Apply(t, s, storetest.Delete(kilobyte(1, 1).Key))
	if _, err := s.Apply(context.Background(),
		store.Batch{Ops: []store.Op{{Put: kilobyte(2, 2), If: store.IfAbsent()}}}); !errors.Is(err, store.ErrConflict) {
		t.Fatalf("got %v, want ErrConflict", err)
	}
	disk.left.Store(1)
	if _, err := s.Apply(context.Background(), storetest.Put(kilobyte(2, 2))); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v, want ErrUnavailable", err)
	}
	expect := func(want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "causeway_store_revision",
			"causeway_store_changelog_commits", "causeway_store_write_failures_total"); err != nil {
			t.Error(err)
		}
	}
	expect(`# HELP causeway_store_changelog_commits Commits in the changelog's window.
# TYPE causeway_store_changelog_commits gauge
causeway_store_changelog_commits 3
# HELP causeway_store_revision Revision of the last commit that this server has seen.
# TYPE causeway_store_revision gauge
causeway_store_revision 3
# HELP causeway_store_write_failures_total Writes that failed.
# TYPE causeway_store_write_failures_total counter
causeway_store_write_failures_total 1
`)
	if got := gauge(t, registry, "causeway_store_resources", "MeshTimeout"); got != 1 {
		t.Errorf("got %v resources, want 1", got)
	}
	if n, err := testutil.GatherAndCount(registry, "causeway_store_resources"); err != nil || n != len(resources.Stored())-2 {
		t.Errorf("%d types are shown (%v), want %d: insights are kept elsewhere", n, err, len(resources.Stored())-2)
	}
	for result, want := range map[string]uint64{"ok": 3, "refused": 1, "unavailable": 1} {
		if got := samples(t, registry, "causeway_store_apply_duration_seconds", result); got != want {
			t.Errorf("%s: got %d samples, want %d", result, got, want)
		}
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The names are free again, and the numbers come back with the file.
	open(t, config)
	if got := gauge(t, registry, "causeway_store_resources", "MeshTimeout"); got != 1 {
		t.Errorf("reopened: got %v resources, want 1", got)
	}
}

func TestMetricsTaken(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	open(t, Config{Registerer: registry})
	path := t.TempDir() + "/store.db"
	if s, err := Open(context.Background(), Config{Path: path, Registerer: registry}); err == nil {
		_ = s.Close()
		t.Fatal("two stores registered the same metrics")
	}
	open(t, Config{Path: path}) // The refused one does not hold the file.
}

func gauge(t *testing.T, g prometheus.Gatherer, name, label string) (value float64) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == label {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no %s of %s", name, label)
	return 0
}

func samples(t *testing.T, g prometheus.Gatherer, name, label string) (count uint64) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == label {
				count = m.GetHistogram().GetSampleCount()
			}
		}
	}
	return count
}
