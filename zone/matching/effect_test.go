package matching_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// TestLeftOut checks of which Dataplanes that a policy selects nobody says that they enforce it.
func TestLeftOut(t *testing.T) {
	made := func(typ resources.Type, name, spec string) *resources.Resource {
		s, err := resources.NewSpec(typ, json.RawMessage(spec))
		if err != nil {
			t.Fatal(err)
		}
		return &resources.Resource{Key: resources.Key{Type: typ, Mesh: "default", Name: name}, Spec: s}
	}
	http := made(resources.TypeDataplane, "web",
		`{"networking":{"address":"192.0.2.1","inbound":[{"port":80,"protocol":"http"},{"port":81}]}}`)
	tcp := made(resources.TypeDataplane, "db", `{"networking":{"address":"192.0.2.1","inbound":[{"port":80}]}}`)
	client := made(resources.TypeDataplane, "client", `{"networking":{"address":"192.0.2.1"}}`)
	unsaid := made(resources.TypeDataplaneInsight, "web", `{"metadata":{"problems":{"proxyless":"inbound \"a\": other; inbound \"a\": kri_mrl_default___limit_: a gRPC server takes no MeshRateLimit"}}}`)
	cut := made(resources.TypeDataplaneInsight, "web", `{"metadata":{"problems":{"policies":"kri_mrl_default___another_: no; kri_mrl_de`+resources.ProblemsCut+`"}}}`)
	limit := `{"default":{"local":{"http":{"requestRate":{"num":1,"interval":"1s"}}}}}`
	for _, tt := range []struct {
		typ                resources.Type
		spec               string
		dataplane, insight *resources.Resource
		want               string
	}{
		{resources.TypeMeshRateLimit, limit, http, nil, ""},
		{resources.TypeMeshRateLimit, limit, tcp, nil, "kri_dp_default___db_80 takes connections only"},
		{resources.TypeMeshRateLimit, limit, client, nil, ""},
		{resources.TypeMeshRateLimit, limit, http, unsaid, "a gRPC server takes no MeshRateLimit"},
		{resources.TypeMeshFaultInjection, limit, http, unsaid, ""},
		{resources.TypeMeshRateLimit, limit, http, cut, "more problems than are kept"},
		{resources.TypeMeshTimeout, `{"to":[{"default":{"idleTimeout":"1s"}}],"from":[{"default":{"http":{"requestTimeout":"1s"}}}]}`, tcp, nil, ""},
		{resources.TypeMeshTimeout, `{"targetRef":{"kind":"Dataplane","sectionName":"81"},"default":{"http":{"requestTimeout":"1s"}}}`, http, nil, "_81 takes connections only"},
	} {
		got, known := matching.NewSelection(made(tt.typ, "limit", tt.spec), "", nil).LeftOut(tt.dataplane,
			matching.ProblemsOf(tt.insight), nil)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) || known == (tt.insight == cut) {
			t.Errorf("%s on %s: %q, known: %v, want %q", tt.typ, tt.dataplane.Name, got, known, tt.want)
		}
	}
}
