package inspect_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/explain"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

// TestShortfallsAreShown: a policy that has no effect on a proxy has a condition that names proxy and field, and is a
// finding of lint, for as long as the proxy reports it.
func TestShortfallsAreShown(t *testing.T) {
	home := resources.Home{Zone: "zone-1"}
	durable, status := store.NewMemory(), store.NewMemory()
	put := func(s store.Store, typ resources.Type, name, spec string) {
		t.Helper()
		parsed, err := resources.NewSpec(typ, []byte(spec))
		if err != nil {
			t.Fatal(err)
		}
		r := &resources.Resource{Key: resources.Key{Type: typ, Mesh: "default", Name: name}, Spec: parsed}
		if typ == resources.TypeMesh {
			r.Mesh = ""
		}
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: home.Labelled(r)}}}); err != nil {
			t.Fatal(err)
		}
	}
	put(durable, resources.TypeMesh, "default", `{}`)
	put(durable, resources.TypeDataplane, "web", `{"networking":{"address":"192.0.2.1","inbound":[{"port":80,"protocol":"http"}]}}`)
	put(durable, resources.TypeMeshHealthCheck, "health", `{"to":[{"targetRef":{"kind":"Mesh"},"default":{"eventLogPath":"/x"}}]}`)
	report := func(text string) {
		put(status, resources.TypeDataplaneInsight, "web", fmt.Sprintf(`{"metadata":{"problems":{"outbounds":%q}}}`, text))
	}
	now := time.Now()
	shortfalls := &inspect.Shortfalls{Status: status, Now: func() time.Time { return now }}
	server := api.New(api.Config{Store: durable, Home: home})
	inspect.Register(server, inspect.Config{Store: durable, Zone: "zone-1", Shortfalls: shortfalls})
	inspect.RegisterPermissions(server, durable, explain.Options{Zone: "zone-1", Shortfalls: shortfalls.Of})
	get := func(path string) string {
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return answer.Body.String()
	}
	const said = "on kri_dp_default_zone-1__web_: kri_mhc_default_zone-1__health_: eventLogPath: cannot be opened"
	for _, tt := range []struct {
		problem string
		shown   bool
	}{{"networking.outbound[0]: no MeshService", false}, {"kri_mhc_default_zone-1__health_: eventLogPath: cannot be opened", true}, {"", false}} {
		report(tt.problem)
		now = now.Add(2 * time.Second)
		policy, lint := get("/meshes/default/meshhealthchecks/health"), get("/meshes/default/_lint")
		if strings.Contains(policy, said) != tt.shown || !strings.Contains(policy, "eventLogPath") {
			t.Errorf("%q: the policy says %s", tt.problem, policy)
		}
		if strings.Contains(lint, said) != tt.shown {
			t.Errorf("%q: lint says %s", tt.problem, lint)
		}
	}
}
