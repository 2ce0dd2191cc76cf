package e2e

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/peer"
)

// TestIncidentsOfZones plays incidents between a global and its zones, two of them of another vendor, and in a zone
// with its proxies.
func TestIncidentsOfZones(t *testing.T) {
	t.Parallel()
	m := newAnonymousMesh(t, "zone-1", "zone-2")
	in := newIncidents(m)
	zone1, zone2 := m.zones["zone-1"], m.zones["zone-2"]
	workload := m.workload(zone1, cluster.InboundConfig{Name: "http-port", Protocol: cluster.ProtocolHTTP})

	in.play("A zone is offline", func() { m.must(zone2.Stop(t.Context())) }, func() { m.must(zone2.Start(t.Context())) })

	old := m.foreignZone("elsewhere", func(r peer.Resource) string {
		if strings.Contains(r.Spec, "9s") {
			return "spec.to[0].default.http.requestTimeout: 9s is more than this zone allows"
		}
		return ""
	})
	policy := timeoutOf("slow", "1")
	in.play("A resource is refused",
		func() { m.apply(m.global, earlyTimeout) },
		func() { m.apply(m.global, strings.ReplaceAll(earlyTimeout, "9s", "7s")) })
	m.must(old.Err())

	in.play("A poisoned resource",
		func() { m.must(old.Offer(foreignService("billing", `{"ports":[{"port":700000}]}`))) },
		func() {
			m.must(old.Offer(foreignService("billing", `{"ports":[{"port":80,"appProtocol":"http"}]}`)))
		})

	m.must(old.Close())
	in.heldRemoval()

	in.play("A rollout hangs", func() {
		zone2.Pause()
		t.Cleanup(zone2.Resume) // a stopped process does not end by SIGTERM
		m.must(m.global.API.Put(t.Context(), "/meshes/default/meshtimeouts/slow", policy))
	}, zone2.Resume)

	in.play("A proxy is behind", func() {
		workload.Proxy.Pause()
		t.Cleanup(workload.Proxy.Resume)
		m.apply(zone1, operator(entry("deny", "Exact", spiffeID("zone-1", "nobody"))))
	}, workload.Proxy.Resume)
	in.all()
}

// heldRemoval reconnects a zone with one of its services.
func (in *incidents) heldRemoval() {
	var services []peer.Resource
	for i := range 30 {
		services = append(services, foreignService(fmt.Sprintf("s%d", i), `{"ports":[{"port":80,"appProtocol":"http"}]}`))
	}
	in.play("A removal is held", func() {
		z := in.foreignZone("elsewhere", nil)
		in.must(z.Offer(services...))
		in.eventually("the services to be there", func(ctx context.Context) error {
			all, err := byDisplayName(ctx, in.global, "/meshes/default/meshservices")
			if _, there := all["s29"]; err == nil && !there {
				err = errNotYet
			}
			return err
		})
		in.must(z.Close())
		in.must(in.foreignZone("elsewhere", nil).Offer(services[0])) // its first list is complete
	}, func() {
		in.says(in.global, 0, nil, "zone", "accept-deletes", "elsewhere", "--type", "MeshService")
	})
}

// TestIncidentsOfTheGlobal plays incidents of a global's store and of a zone's credential.
func TestIncidentsOfTheGlobal(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1")
	in := newIncidents(m)
	d := &disk{mesh: m}
	in.play("The disk is full", func() {
		d.limit(m.global, 4096)
		if err := d.put(m.global, "refused"); cluster.StatusOf(err) < http.StatusInternalServerError {
			t.Errorf("a write to the full disk was answered with %v", err)
		}
	}, func() { d.limit(m.global, unix.RLIM_INFINITY) })

	in.play("The global was restored", func() {
		backup := filepath.Join(t.TempDir(), "global.backup")
		_, err := m.CTL(t.Context(), m.global, nil, "backup", "create", backup)
		m.must(err)
		m.startZone("zone-2")
		m.must(m.global.Stop(t.Context()))
		_, err = m.Output(t.Context(), nil, "causewayctl", "restore", backup, "--data-dir", m.global.DataDir, "--overwrite")
		m.must(err)
		m.must(m.global.Start(t.Context()))
	}, func() { in.says(m.global, 0, nil, "zone", "adopt", "zone-2") })

	var clone *cluster.Server
	in.play("Two servers are one zone", func() {
		var err error
		clone, err = m.StartClone(t.Context(), m.zones["zone-1"], "clone")
		m.must(err)
	}, func() {
		m.must(clone.Stop(t.Context()))
		m.must(m.global.Stop(t.Context())) // it remembers them for 15 minutes
		m.must(m.global.Start(t.Context()))
	})
	in.all()
}

// TestIncidentsOfTime plays incidents of clocks: 25 of the 30 days of a zone's certificate pass while the zone is away,
// and then the global answers with the time of a wrong clock.
func TestIncidentsOfTime(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(t.TempDir(), "bin")
	if err := cluster.BuildWithClocks(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	m := newClusterOf(t, bin)
	clock, err := cluster.NewClock(filepath.Join(t.TempDir(), "clock"))
	m.must(err)
	t.Cleanup(func() { _ = clock.Close() })
	m.must(clock.Set(-25 * day))
	m.global, err = m.StartGlobal(t.Context(), cluster.GlobalConfig{Clock: clock})
	m.must(err)
	zone, err := m.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: m.global, Clock: clock})
	m.must(err)
	m.must(zone.WaitMesh(t.Context(), "default"))
	in := newIncidents(m)
	in.play("A certificate is near its end", func() {
		m.must(zone.Stop(t.Context()))
		m.must(clock.Set(0))
	}, func() { m.must(zone.Start(t.Context())) })
	in.play("A clock is wrong", func() { in.knows("global", m.withClock(m.global, 10*time.Minute)) },
		func() { in.knows("global", m.global.API.URL()) })
	in.all()
}

// TestIncidentWithoutEtcd plays the loss of the etcd that holds a global's store.
func TestIncidentWithoutEtcd(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, 1)
	m := newCluster(t)
	var err error
	m.global, err = m.StartGlobal(t.Context(), cluster.GlobalConfig{
		Args: []string{"--store", "etcd", "--etcd-endpoints", etcd.Members[0].Endpoint}})
	m.must(err)
	in := newIncidents(m)
	in.play("Etcd is lost", etcd.Members[0].Kill, func() {
		etcd.Members[0].Start(t)
		etcd.Members[0].Ready(t)
	})
	in.all()
}
