package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// patience bounds the wait for any background event.
const patience = 60 * time.Second

// mesh is a global and zones that end with the test. On a failure it shows the ends of their logs.
type mesh struct {
	*cluster.Cluster
	t      *testing.T
	global *cluster.Server
	zones  map[string]*cluster.Server
	xds    string // where the Envoys of workloads find their zone; its own address if this is empty
}

// newMesh starts a global and the zones, and waits until the zones have the mesh default.
func newMesh(t *testing.T, zones ...string) *mesh {
	t.Helper()
	return startMesh(t, cluster.GlobalConfig{}, zones...)
}

// newAnonymousMesh is newMesh with a global that also admits zones that have not joined.
func newAnonymousMesh(t *testing.T, zones ...string) *mesh {
	t.Helper()
	return startMesh(t, cluster.GlobalConfig{Anonymous: true}, zones...)
}

func startMesh(t *testing.T, config cluster.GlobalConfig, zones ...string) *mesh {
	t.Helper()
	m := newCluster(t)
	var err error
	m.global, err = m.StartGlobal(t.Context(), config)
	m.must(err)
	for _, name := range zones {
		m.startZone(name)
	}
	return m
}

func newCluster(t *testing.T) *mesh {
	t.Helper()
	return newClusterOf(t, programs.bin())
}

// newClusterOf is newCluster with the programs of a folder.
func newClusterOf(t *testing.T, bin string) *mesh {
	t.Helper()
	c, err := cluster.New(cluster.Config{Bin: bin, Envoy: programs.envoy(), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	m := &mesh{Cluster: c, t: t, zones: map[string]*cluster.Server{}}
	t.Cleanup(func() {
		if t.Failed() {
			var logs strings.Builder
			c.Tails(&logs, 15)
			t.Logf("the ends of the logs:\n%s", logs.String())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// startZone starts a zone of the mesh's global, or one that runs alone when there is no global.
func (m *mesh) startZone(name string) *cluster.Server {
	m.t.Helper()
	zone, err := m.StartZone(m.t.Context(), cluster.ZoneConfig{Name: name, Global: m.global})
	m.must(err)
	m.zones[name] = zone
	m.must(zone.WaitMesh(m.t.Context(), "default"))
	return zone
}

func (m *mesh) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// eventually fails the test if condition does not return nil in time.
func (m *mesh) eventually(what string, condition func(context.Context) error) {
	m.t.Helper()
	m.must(cluster.Until(m.t.Context(), patience, what, condition))
}

// apply applies YAML with causewayctl.
func (m *mesh) apply(s *cluster.Server, documents string) {
	m.t.Helper()
	_, err := m.CTL(m.t.Context(), s, strings.NewReader(documents), "apply", "-f", "-")
	m.must(err)
}

// remove deletes the resources in YAML.
func (m *mesh) remove(s *cluster.Server, documents string) {
	m.t.Helper()
	_, err := m.CTL(m.t.Context(), s, strings.NewReader(documents), "delete", "-f", "-")
	m.must(err)
}

// workload starts a Dataplane `backend` of the namespace backend-ns with an Envoy and applications.
func (m *mesh) workload(zone *cluster.Server, inbounds ...cluster.InboundConfig) *cluster.Workload {
	m.t.Helper()
	w, err := m.StartWorkload(m.t.Context(), cluster.WorkloadConfig{
		Zone: zone, Mesh: "default", Namespace: "backend-ns", Name: "backend", ServiceAccount: "backend",
		Labels: map[string]string{"app": "backend"}, Inbounds: inbounds, XDS: m.xds,
	})
	m.must(err)
	m.t.Cleanup(w.Close)
	return w
}

// client registers a Dataplane of the namespace default and returns a client with its identity.
func (m *mesh) client(zone *cluster.Server, name string) (*cluster.Client, *cluster.Identity) {
	m.t.Helper()
	names := []string{zone.Name()}
	for other := range m.zones {
		names = append(names, other)
	}
	id, err := cluster.RegisterClient(m.t.Context(), cluster.WorkloadConfig{
		Zone: zone, Mesh: "default", Namespace: "default", Name: name, ServiceAccount: name,
	}, names...)
	m.must(err)
	c := cluster.NewClient(id, false)
	m.t.Cleanup(c.Close)
	return c, id
}

// spiffeID returns the SPIFFE ID of a service account in the namespace default.
func spiffeID(zone, account string) string {
	return "spiffe://" + cluster.TrustDomain("default", zone) + "/ns/default/sa/" + account
}

// timeouts returns the MeshTimeouts of a server by display name.
func timeouts(ctx context.Context, s *cluster.Server) (map[string]cluster.Item, error) {
	return byDisplayName(ctx, s, "/meshes/default/meshtimeouts")
}

func byDisplayName(ctx context.Context, s *cluster.Server, path string) (map[string]cluster.Item, error) {
	items, err := s.API.List(ctx, path)
	if err != nil {
		return nil, err
	}
	all := map[string]cluster.Item{}
	for _, it := range items {
		name := it.Labels["kuma.io/display-name"]
		if name == "" {
			name = it.Name
		}
		if other, twice := all[name]; twice {
			return nil, fmt.Errorf("%s has %s twice: %s and %s", s.Name(), name, other.Name, it.Name)
		}
		all[name] = it
	}
	return all, nil
}

var errNotYet = errors.New("not yet")
