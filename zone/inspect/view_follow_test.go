package inspect_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

// TestAnswersAfterChangesAreThoseOfAFreshServer makes changes of all kinds, and compares the answers of a server that
// follows them with those of a server that reads the store for the first time.
func TestAnswersAfterChangesAreThoseOfAFreshServer(t *testing.T) {
	t.Parallel()
	asked := []string{backend + "_rules" + inShop, backend + "_layout" + inShop, backend + "_policies" + inShop,
		"/meshes/default/meshtrafficpermissions", "/meshes/default/meshtimeouts"}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			dice := rand.New(rand.NewPCG(seed, 11))
			s := newSite(t, "zone-1")
			for step := range 60 {
				for range 1 + dice.IntN(3) {
					s.change(t, dice)
				}
				fresh := api.New(api.Config{Store: s.store, Home: resources.Home{Zone: "zone-1"}})
				inspect.Register(fresh, inspect.Config{Store: s.store, Zone: "zone-1"})
				for _, path := range asked {
					if dice.IntN(3) == 0 {
						continue
					}
					if got, want := answerOf(s.handler, path), answerOf(fresh, path); got != want {
						t.Fatalf("step %d, %s:\n%s\na fresh server says\n%s", step, path, got, want)
					}
				}
			}
		})
	}
}

func answerOf(server http.Handler, path string) string {
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	return fmt.Sprint(recorder.Code, " ", recorder.Body)
}

// change writes or removes one resource, a policy more often than others.
func (s *site) change(t *testing.T, dice *rand.Rand) {
	t.Helper()
	pick := func(all ...string) string { return all[dice.IntN(len(all))] }
	n := dice.IntN(6)
	var text string
	switch dice.IntN(12) {
	case 0:
		text = fmt.Sprintf(`{type: MeshService, mesh: default, namespace: shop, name: of-%d,
  spec: {selector: {dataplaneLabels: {matchLabels: {app: backend}}}, ports: [{port: 80, appProtocol: %s}]}}`, n, pick("http", "tcp"))
	case 1:
		text = fmt.Sprintf(`{type: MeshGateway, mesh: default, name: g-%d, selectors: [{match: {kuma.io/service: edge}}],
  conf: {listeners: [{port: 80, protocol: HTTP}]}}`, n)
	case 2:
		text = fmt.Sprintf(`{type: MeshHTTPRoute, mesh: default, name: r-%d, spec: {to: [{targetRef: {kind: MeshService, name: of-%d},
  rules: [{matches: [{path: {type: PathPrefix, value: /x}}], default: {}}]}]}}`, n, dice.IntN(6))
	case 3, 4:
		key := resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: fmt.Sprintf("t-%d", n)}
		if dice.IntN(2) == 0 {
			key = resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default", Name: fmt.Sprintf("p-%d", n)}
		}
		if _, err := s.store.Apply(context.Background(), store.Batch{Ops: []store.Op{{Delete: key}}}); err != nil {
			t.Fatal(err)
		}
		return
	case 5, 6, 7:
		text = fmt.Sprintf(`{type: MeshTimeout, mesh: default, name: t-%d, spec: {targetRef: %s, to: [{targetRef: %s,
  default: {connectionTimeout: %ds}}]}}`, n, pick("{kind: Mesh}", "{kind: Dataplane, labels: {app: backend}}"),
			pick("{kind: Mesh}", fmt.Sprintf("{kind: MeshService, name: of-%d}", dice.IntN(6))), 1+dice.IntN(9))
	default:
		text = fmt.Sprintf(`{type: MeshTrafficPermission, mesh: default, name: p-%d, spec: {targetRef: %s, rules: [{default: {
  %s: [{spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/ns/shop/sa/web"}}]}}]}}`, n,
			pick("{kind: Mesh}", "{kind: Dataplane, labels: {app: backend}}", "{kind: Dataplane, labels: {app: nobody}}"), pick("allow", "deny"))
	}
	docs, err := resources.DecodeDocuments([]byte(text), resources.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: resources.Home{Zone: "zone-1"}.Labelled(docs[0])}}}); err != nil {
		t.Fatal(err)
	}
}
