package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/test/cluster"
)

const identityFromFiles = `{type: MeshIdentity, mesh: default, name: ours, spec: {selector: {dataplane: {}}, provider: {type: Bundled, bundled: {ca: {
  certificate: {type: File, file: {path: %q}}, privateKey: {type: File, file: {path: %q}}}}}}}`

// TestTwoIntermediatesOfOneRoot checks two zones that sign with intermediates of one root: one was imported, the other
// is in files that a MeshIdentity names. Once the zones' own authorities are retired, workloads reach each other by
// that root alone. What an intermediate signs for the other zone is refused, because its name constraints do not permit
// it.
func TestTwoIntermediatesOfOneRoot(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	zone1, zone2 := m.startZoneWith("zone-1", "--identity-overlap", "-1s"),
		m.startZoneWith("zone-2", "--identity-overlap", "-1s")
	backend, frontend := m.across(zone1, zone2)
	const caller = "spiffe://default.zone-2.mesh.local/ns/frontend-ns/sa/frontend"
	m.apply(m.global, fmt.Sprintf(allowIdentity, "frontend", caller))
	m.answers(frontend, http.StatusOK)

	root, err := cluster.NewRoot()
	m.must(err)
	one, err := root.Intermediate("one", "default.zone-1.mesh.local")
	m.must(err)
	two, err := root.Intermediate("two", "default.zone-2.mesh.local")
	m.must(err)
	chain, key, err := one.WriteFiles(t.TempDir())
	m.must(err)
	_, err = m.CTL(t.Context(), zone1, nil, "keys", "import", "identity:default", "--certificates", chain, "--key", key)
	m.must(err)
	chain, key, err = two.WriteFiles(t.TempDir())
	m.must(err)
	m.apply(zone2, fmt.Sprintf(identityFromFiles, chain, key))
	m.signedBy(zone1, one, "backend-ns", "backend")
	id := m.signedBy(zone2, two, "frontend-ns", "frontend")
	for _, zone := range []*cluster.Server{zone1, zone2} {
		m.retireAccepted(zone)
	}
	m.answers(frontend, http.StatusOK)

	for authority, want := range map[*cluster.Authority]bool{two: true, one: false} {
		forged, err := authority.Trusting(id.Bundles).Forge(caller)
		m.must(err)
		c := cluster.NewClient(forged, false)
		defer c.Close()
		m.eventually("the verdict on a client signed by an intermediate", func(ctx context.Context) error {
			v, err := backend.Judge(ctx, c, "http", "/")
			if got := err == nil && v.Allowed(); got != want {
				return fmt.Errorf("allowed %v: %s %w", got, v, err)
			}
			return nil
		})
	}
}

// signedBy waits until the authority signs an SVID.
func (m *mesh) signedBy(zone *cluster.Server, by *cluster.Authority, namespace, dataplane string) *cluster.Identity {
	m.t.Helper()
	var id *cluster.Identity
	m.eventually("the provided authority to sign in "+zone.Name(), func(ctx context.Context) error {
		var err error
		if id, err = zone.SVID(ctx, "default", namespace, dataplane); err == nil && !by.Signed(id) {
			err = errNotYet
		}
		return err
	})
	return id
}

// retireAccepted retires all authorities of the zone that do not sign, once its proxies have identities of the one that
// does.
func (m *mesh) retireAccepted(zone *cluster.Server) {
	m.t.Helper()
	out, err := m.CTL(m.t.Context(), zone, nil, "keys", "list", "-o", "json")
	m.must(err)
	var list api.SigningKeyList
	m.must(json.Unmarshal(out, &list))
	retired := 0
	for _, k := range list.Keys {
		if strings.HasPrefix(k.Purpose, "identity:") && k.State == "accepted" {
			_, err := m.CTL(m.t.Context(), zone, nil, "keys", "retire", k.Purpose, k.ID, "--force")
			m.must(err)
			retired++
		}
	}
	if retired != 1 {
		m.t.Fatalf("%d authorities of %s to retire: %s", retired, zone.Name(), out)
	}
}
