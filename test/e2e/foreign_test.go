package e2e

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/peer"
)

// The sizes of these tests. They check that nothing is lost under some load, not speed.
const (
	loadZones    = 20
	loadPolicies = 500
	loadProxies  = 50
	loadWrites   = 10
)

// foreignTypes are the types that the foreign zones request.
var foreignTypes = []string{"Mesh", "MeshTrafficPermission", "MeshTimeout", "MeshService"}

// TestManyForeignZones checks that zones of another vendor get all policies, then each change. A slow one does not
// delay the others.
func TestManyForeignZones(t *testing.T) {
	t.Parallel()
	m := newAnonymousMesh(t)
	for i := range loadPolicies {
		m.must(m.global.API.Put(t.Context(), loadPath(i), loadPolicy(i, "first")))
	}
	zones := make([]*peer.Zone, loadZones)
	for i := range zones {
		zones[i] = m.foreignZone(fmt.Sprintf("foreign-%d", i), nil)
	}
	start := time.Now()
	for _, z := range zones {
		m.eventually("all policies in every zone", func(context.Context) error {
			return holds(z, loadPolicies, "")
		})
	}
	t.Logf("%d policies in %d zones after %s", loadPolicies, loadZones, time.Since(start).Round(time.Millisecond))
	for i := range loadWrites {
		mark := fmt.Sprintf("mark-%d", i)
		m.must(m.global.API.Put(t.Context(), loadPath(i), loadPolicy(i, mark)))
		for _, z := range zones {
			m.eventually(mark+" in every zone", func(context.Context) error { return holds(z, loadPolicies, mark) })
		}
	}
	m.must(m.global.API.Delete(t.Context(), loadPath(0)))
	for _, z := range zones {
		m.eventually("the deletion in every zone", func(context.Context) error { return holds(z, loadPolicies-1, "") })
		if err := z.Err(); err != nil {
			t.Error(err)
		}
	}
}

func loadPath(i int) string {
	return fmt.Sprintf("/meshes/default/meshtrafficpermissions/load-%d", i)
}

func loadPolicy(i int, mark string) map[string]any {
	match := map[string]any{"spiffeId": map[string]any{"type": "Exact", "value": "spiffe://nobody/" + mark}}
	return map[string]any{"type": "MeshTrafficPermission", "mesh": "default", "name": fmt.Sprintf("load-%d", i),
		"spec": map[string]any{
			"targetRef": map[string]any{"kind": "Mesh"},
			"rules":     []any{map[string]any{"default": map[string]any{"allow": []any{match}}}},
		}}
}

// holds checks that a zone has the given number of permissions, one of them with the mark.
func holds(z *peer.Zone, n int, mark string) error {
	if err := z.Err(); err != nil {
		return cluster.Final(err)
	}
	copies, _ := z.Copies("MeshTrafficPermission")
	if len(copies) != n {
		return fmt.Errorf("%d of %d policies", len(copies), n)
	}
	for _, r := range copies {
		if strings.Contains(r.Spec, mark) {
			return nil
		}
	}
	return fmt.Errorf("no policy applies %s", mark)
}

// foreignZone connects a foreign zone until the end of the test.
func (m *mesh) foreignZone(name string, refuse func(peer.Resource) string) *peer.Zone {
	m.t.Helper()
	file, err := m.global.CAFile()
	m.must(err)
	pem, err := os.ReadFile(file)
	m.must(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	z, err := peer.Connect(m.t.Context(), peer.ZoneConfig{
		Name: name, KDS: m.global.Address("kds"), CA: pool, Types: foreignTypes, Refuse: refuse,
	})
	m.must(err)
	m.t.Cleanup(func() { _ = z.Close() })
	return z
}

// TestForeignZoneIsHeard checks that a foreign zone's resources are stored under hashed names as the zone's own. A bad
// one is refused by name and does not affect the good ones. The zone's own refusals show in its ZoneInsight. It cannot
// write what belongs to another origin.
func TestForeignZoneIsHeard(t *testing.T) {
	t.Parallel()
	m := newAnonymousMesh(t, "zone-1")
	z := m.foreignZone("elsewhere", func(r peer.Resource) string {
		if r.Labels["kuma.io/display-name"] == "not-liked" {
			return "this zone does not like it"
		}
		return ""
	})
	service := foreignService("billing", `{"state":"Available","selector":{"dataplaneTags":{"app":"billing"}},"ports":[{"port":80,"appProtocol":"http"}]}`)
	broken := foreignService("broken", `{"ports":[{"port":700000}]}`)
	m.must(z.Offer(service, broken))

	m.eventually("the foreign service in zone-1", func(ctx context.Context) error {
		all, err := byDisplayName(ctx, m.zones["zone-1"], "/meshes/default/meshservices")
		if err != nil {
			return err
		}
		it, ok := all["billing"]
		if !ok {
			return errNotYet
		}
		if it.Labels["kuma.io/zone"] != "elsewhere" || it.Labels["kuma.io/origin"] != "global" || it.Name == "billing" {
			return cluster.Final(fmt.Errorf("the copy is %s with %v", it.Name, it.Labels))
		}
		return nil
	})
	m.eventually("the refusal of the broken one", func(context.Context) error {
		reasons := strings.Join(z.Refusals(), "\n")
		if !strings.Contains(reasons, "broken") {
			return fmt.Errorf("refusals: %q", reasons)
		}
		if strings.Contains(reasons, "billing") {
			return cluster.Final(fmt.Errorf("the good one was refused too: %q", reasons))
		}
		return nil
	})
	m.must(z.Withdraw(service))
	m.eventually("the service to go", func(ctx context.Context) error {
		all, err := byDisplayName(ctx, m.zones["zone-1"], "/meshes/default/meshservices")
		if _, ok := all["billing"]; ok && err == nil {
			err = errNotYet
		}
		return err
	})
	m.foreignRefusalShows()
	m.must(z.Err())
}

// foreignService returns a MeshService of the zone `elsewhere` as the zone sends it: with a hashed name. The global
// must not trust the zone in its labels.
func foreignService(name, spec string) peer.Resource {
	return peer.Resource{
		Type: "MeshService", Name: hashing.Name("default", name, "elsewhere"), Mesh: "default", Spec: spec,
		Labels: map[string]string{
			"kuma.io/origin": "zone", "kuma.io/zone": "somebody-else", "kuma.io/display-name": name, "kuma.io/mesh": "default",
		},
	}
}

// foreignRefusalShows writes a resource that the zone `elsewhere` refuses, and expects the refusal to be counted.
func (m *mesh) foreignRefusalShows() {
	m.t.Helper()
	m.must(m.global.API.Put(m.t.Context(), "/meshes/default/meshtimeouts/not-liked", timeoutOf("not-liked", "1")))
	m.eventually("the refusal in the ZoneInsight", func(ctx context.Context) error {
		var insight struct {
			Subscriptions []struct {
				Status struct {
					Stat map[string]struct {
						Rejected string `json:"responsesRejected"`
					} `json:"stat"`
				} `json:"status"`
			} `json:"subscriptions"`
		}
		if err := m.global.API.Get(ctx, "/zone-insights/elsewhere", &insight); err != nil {
			return err
		}
		for _, s := range insight.Subscriptions {
			if s.Status.Stat["MeshTimeout"].Rejected != "" {
				return nil
			}
		}
		return fmt.Errorf("nothing rejected in %+v", insight)
	})
}
