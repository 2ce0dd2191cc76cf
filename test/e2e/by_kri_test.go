package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestByKRIAlone checks that a KRI alone names a Dataplane with a namespace, on its zone and on the global, in each route
// and command about Dataplanes; and that a 404 names the nearest that there is, by whatever the question lacks.
func TestByKRIAlone(t *testing.T) {
	t.Parallel()
	m := &truth{newMesh(t, "zone-1")}
	zone := m.zones["zone-1"]
	const kri, misspelt, caller = "kri_dp_default_zone-1_shop_backend_", "kri_dp_default_zone-1_shop_backand_",
		"spiffe://default.zone-1.mesh.local/ns/shop/sa/web"
	const inbound = "kri_dp_default_zone-1_shop_backend_http-port"
	m.apply(zone, "{type: Dataplane, mesh: default, name: backend, namespace: shop, networking: {address: 127.0.0.1, "+
		"inbound: [{name: http-port, port: 8080, tags: {kuma.io/protocol: http}}]}}")
	m.apply(zone, timeout("own", "10s"))
	m.arrives(m.global, "own")
	for _, s := range []*cluster.Server{zone, m.global} {
		for _, path := range []string{"", "/_overview", "/_rules", "/_policies", "/_layout", "/_inbounds/" + inbound + "/_policies"} {
			at := "http://" + s.Address("api") + "/meshes/default/dataplanes/"
			m.answers(at+kri+path, http.StatusOK, "")
			if !strings.Contains(path, "_inbounds") {
				m.answers(at+misspelt+path, http.StatusNotFound, "the nearest here: "+kri)
			}
			m.answers(at+"backand"+path+"?namespace=shop", http.StatusNotFound, "the nearest here: "+kri)
			m.answers(at+"backend"+path+"?namespace=elsewhere", http.StatusNotFound, kri)
		}
		m.answers("http://"+s.Address("api")+"/_kri/"+misspelt, http.StatusNotFound, "the nearest here: "+kri)
		for _, args := range [][]string{{"get", "-o", "name"}, {"describe"}, {"inspect", "dataplane"}} {
			m.says(s, 0, []string{kri}, append(args, kri)...)
			m.names(s, kri, append(args, misspelt)...)
		}
		m.says(s, 1, []string{"denied"}, "explain", "--to", kri, "--from", caller)
		m.says(s, 1, []string{"denied"}, "why", caller, kri)
	}
}

// names checks that a command about a missing resource ends with status 2, and names the nearest existing one.
func (m *truth) names(s *cluster.Server, nearest string, args ...string) {
	m.t.Helper()
	_, err := m.CTL(m.t.Context(), s, nil, args...)
	if got := exitStatus(err); got != 2 || !strings.Contains(err.Error(), "the nearest here: "+nearest) {
		m.t.Errorf("causewayctl %v on %s: exit status %d: %v", args, s.Name(), got, err)
	}
}

// answers checks the status of an answer, and words in it.
func (m *truth) answers(url string, status int, words string) {
	m.t.Helper()
	r, err := http.NewRequestWithContext(m.t.Context(), http.MethodGet, url, http.NoBody)
	m.must(err)
	answer, err := http.DefaultClient.Do(r)
	m.must(err)
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	m.must(err)
	if answer.StatusCode != status || !strings.Contains(string(said), words) {
		m.t.Errorf("%s: %d %s, want %d and %q", url, answer.StatusCode, said, status, words)
	}
}
