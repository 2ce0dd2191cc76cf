package kubernetes

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
)

// TestSchemaOfDefinitions reads the definitions of this version, of another one and none, and an API server that is away.
func TestSchemaOfDefinitions(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile("../deploy/crds/kuma.io_meshtimeouts.yaml")
	must(t, err)
	if own, err = yaml.YAMLToJSON(own); err != nil {
		t.Fatal(err)
	}
	answer, status := string(own), http.StatusOK
	g := newRigWith(t, connectedTo(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	}))
	k := g.kinds[resources.TypeMeshTimeout]
	for _, tt := range []struct {
		name, answer string
		status       int
		differs      bool
	}{
		{"of this version", answer, http.StatusOK, false},
		{"of another one", strings.Replace(answer, Schema(k.Type), "0123456789abcdef", 1), http.StatusOK, true},
		{"the API server is away", "{}", http.StatusServiceUnavailable, true},
		{"gone", "{}", http.StatusNotFound, false},
		{"of the peer", `{"metadata": {"name": "meshtimeouts.kuma.io"}}`, http.StatusOK, true},
		{"replaced by ours", answer, http.StatusOK, false},
	} {
		answer, status = tt.answer, tt.status
		g.compareSchema(t.Context(), k)
		want := ""
		if tt.differs {
			want = "# HELP causeway_kubernetes_definition_differs 1 while the CustomResourceDefinition of the type is of another version than the server: causewayctl install crds prints the server's.\n" +
				"# TYPE causeway_kubernetes_definition_differs gauge\ncauseway_kubernetes_definition_differs{type=\"MeshTimeout\"} 1\n"
		}
		if err := testutil.CollectAndCompare(g.Bridge, strings.NewReader(want), "causeway_kubernetes_definition_differs"); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestSchemasDiffer checks that types with other fields have other hashes.
func TestSchemasDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]resources.Type{}
	for _, k := range Kinds() {
		hash := Schema(k.Type)
		if other, there := seen[hash]; there || len(hash) != 2*schemaBytes || hash != Schema(k.Type) {
			t.Errorf("%s has %q, as %s", k.Type, hash, other)
		}
		seen[hash] = k.Type
	}
}
