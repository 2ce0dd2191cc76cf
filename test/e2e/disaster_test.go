package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

const (
	earlyTimeout = `{type: MeshTimeout, mesh: default, name: early, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {requestTimeout: 9s}}}]}}`
	lateTimeout  = `{type: MeshTimeout, mesh: default, name: late, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {requestTimeout: 8s}}}]}}`
	zonesTimeout = `{type: MeshTimeout, mesh: default, name: of-the-zone, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {requestTimeout: 7s}}}]}}`
	otherService = `{type: MeshService, mesh: default, name: shop, spec: {selector: {dataplaneLabels: {matchLabels: {app: shop}}}, ports: [{port: 80, targetPort: 8080, appProtocol: http}]}}`
)

// disaster is a mesh whose global loses its store. A restored store is older than the zones, a rebuilt one is empty.
type disaster struct {
	*mesh
	zone1, zone2 *cluster.Server
	backup       string
	backend      *cluster.Workload
}

// TestGlobalLosesItsStore checks that zones delete nothing, no listener changes, and the zones' resources reach the
// global again.
func TestGlobalLosesItsStore(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*disaster){"restored": (*disaster).restore, "rebuilt": (*disaster).rebuild} {
		t.Run(name, func(t *testing.T) {
			d := startDisaster(t)
			before, err := d.backend.Proxy.ListenerStats(t.Context())
			d.must(err)
			d.must(d.global.Stop(t.Context()))
			lose(d)
			d.must(d.global.Start(t.Context()))
			d.adopted("zone-1", "zone-2")
			d.comesBack()
			d.keeps(d.zone1, "early", "late", "of-the-zone")
			d.caughtUp()
			after, err := d.backend.Proxy.ListenerStats(t.Context())
			d.must(err)
			for _, counter := range []string{"listener_added", "listener_modified", "listener_removed"} {
				if before[counter] != after[counter] {
					t.Errorf("%s was %v and is %v", counter, before[counter], after[counter])
				}
			}
		})
	}
}

// startDisaster makes a backup after zone-1 exists. zone-2 and the policy late follow after it.
func startDisaster(t *testing.T) *disaster {
	d := &disaster{mesh: newMesh(t, "zone-1"), backup: filepath.Join(t.TempDir(), "global.backup")}
	d.zone1 = d.zones["zone-1"]
	d.backend = d.workload(d.zone1, cluster.InboundConfig{Name: "http-port", Protocol: cluster.ProtocolHTTP})
	d.apply(d.global, earlyTimeout)
	d.arrives(d.zone1, "early")
	_, err := d.CTL(t.Context(), d.global, nil, "backup", "create", d.backup)
	d.must(err)
	d.zone2 = d.startZone("zone-2")
	d.apply(d.global, lateTimeout)
	d.apply(d.zone1, zonesTimeout)
	d.apply(d.zone2, otherService)
	d.arrives(d.zone1, "late")
	d.arrives(d.zone2, "late")
	d.arrives(d.global, "of-the-zone")
	d.serviceThere(d.zone1)
	return d
}

func (d *disaster) restore() {
	_, err := d.Output(d.t.Context(), nil, "causewayctl", "restore", d.backup, "--data-dir", d.global.DataDir,
		"--overwrite")
	d.must(err)
}

func (d *disaster) rebuild() {
	d.must(os.Remove(filepath.Join(d.global.DataDir, "causeway.db")))
	d.must(os.RemoveAll(filepath.Join(d.global.DataDir, "audit")))
}

// adopted adopts the zones that the global does not know, as soon as they ask. A zone that the global knows reconnects
// by itself.
func (d *disaster) adopted(zones ...string) {
	d.t.Helper()
	for _, zone := range zones {
		d.eventually(zone+" to be let in", func(ctx context.Context) error {
			var status struct{ Connected bool }
			if d.global.API.Get(ctx, "/zones/"+zone+"/_sync", &status) == nil && status.Connected {
				return nil
			}
			if _, err := d.CTL(ctx, d.global, nil, "zone", "adopt", zone); err != nil {
				return err
			}
			return errNotYet
		})
	}
}

// comesBack checks that the global has the zones' resources again, and one zone those of another.
func (d *disaster) comesBack() {
	d.t.Helper()
	d.arrives(d.global, "of-the-zone")
	d.serviceThere(d.global)
	d.serviceThere(d.zone1)
	d.eventually("the Dataplane and its insight on the global", func(ctx context.Context) error {
		var page struct {
			Items []struct {
				Name             string
				DataplaneInsight struct {
					Subscriptions []struct{ DisconnectTime *string }
				}
			}
		}
		if err := d.global.API.Get(ctx, "/meshes/default/dataplanes/_overview", &page); err != nil {
			return err
		}
		for _, it := range page.Items {
			if s := it.DataplaneInsight.Subscriptions; strings.HasPrefix(it.Name, "backend-") && len(s) > 0 &&
				s[len(s)-1].DisconnectTime == nil {
				return nil
			}
		}
		return fmt.Errorf("the global has %+v", page.Items)
	})
}

func (d *disaster) serviceThere(s *cluster.Server) {
	d.t.Helper()
	d.eventually("the service of zone-2 in "+s.Name(), func(ctx context.Context) error {
		all, err := byDisplayName(ctx, s, "/meshes/default/meshservices")
		if err != nil {
			return err
		}
		if all["shop"].Name == "" {
			return errNotYet
		}
		return nil
	})
}

// keeps checks that a zone that has compared everything with the new store still has the timeouts.
func (d *disaster) keeps(zone *cluster.Server, names ...string) {
	d.t.Helper()
	d.eventually(zone.Name()+" to hold removals", func(ctx context.Context) error {
		held, err := zone.Metric(ctx,
			fmt.Sprintf(`causeway_kds_held_deletions{direction="toZone",type="MeshTimeout",zone=%q}`, zone.Name()))
		if err != nil || held < 1 {
			return fmt.Errorf("held are %v, %w", held, err)
		}
		return nil
	})
	d.names(zone.API.URL(), "zone", zone.Name(), "MeshTimeout is held")
	all, err := timeouts(d.t.Context(), zone)
	d.must(err)
	for _, name := range names {
		if all[name].Name == "" {
			d.t.Errorf("%s lost %s", zone.Name(), name)
		}
	}
}

// caughtUp checks that restored resources are no longer held, that the rest goes once an operator accepts it, and that
// the zones know the store.
func (d *disaster) caughtUp() {
	d.t.Helper()
	d.apply(d.global, lateTimeout)
	for _, zone := range []*cluster.Server{d.zone1, d.zone2} {
		d.eventually(zone.Name()+" to know the store", func(ctx context.Context) error {
			if _, err := d.CTL(ctx, zone, nil, "zone", "accept-deletes", zone.Name()); err != nil {
				return err
			}
			out, err := d.CTL(ctx, zone, nil, "inspect", "sync", "-o", "json")
			if err != nil {
				return err
			}
			if strings.Contains(string(out), "newStore") || strings.Contains(string(out), `"held"`) {
				return errNotYet
			}
			return nil
		})
		d.arrives(zone, "late")
	}
	_, metric := d.zone1.Metric(d.t.Context(), `causeway_kds_new_store{zone="zone-1"}`)
	if metric == nil {
		d.t.Error("the metric of a new store is still there")
	}
}
