package callers_test

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
	"github.com/causeway-mesh/causeway/zone/callers"
)

// TestAnswerAfterChangesIsThatOfAFreshServer makes changes of all kinds, and compares each answer of a server that
// follows them with that of a server that reads the store for the first time.
func TestAnswerAfterChangesIsThatOfAFreshServer(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			dice := rand.New(rand.NewPCG(seed, 7))
			s := newSite(t)
			for step := range 90 {
				for range 1 + dice.IntN(3) {
					s.change(t, dice)
				}
				for _, query := range []string{"", "caller=web", "method=GET&path=/reports"} {
					if dice.IntN(3) == 0 {
						continue
					}
					got, want := askRaw(s, query), askRaw(s.fresh(), query)
					if got != want {
						t.Fatalf("step %d, %q:\n%s\na fresh server says\n%s", step, query, got, want)
					}
				}
			}
		})
	}
}

// fresh returns a server with the same store, which has parsed nothing of it.
func (s *site) fresh() http.Handler {
	server := api.New(api.Config{Store: s.store, Home: resources.Home{Zone: "zone-1"}})
	callers.Register(server, callers.Config{Store: s.store, Status: s.store, Zone: "zone-1", Journal: s.journal, Collecting: true})
	return server
}

func askRaw(server http.Handler, query string) string {
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/meshes/default/_access?"+query, nil))
	return fmt.Sprint(recorder.Code, " ", recorder.Body)
}

// change writes or removes one resource, a permission more often than others.
func (s *site) change(t *testing.T, dice *rand.Rand) {
	t.Helper()
	pick := func(all ...string) string { return all[dice.IntN(len(all))] }
	app := pick("backend", "web", "ledger", "audit")
	n := dice.IntN(12)
	switch dice.IntN(20) {
	case 0:
		s.put(t, fmt.Sprintf(`{type: Dataplane, mesh: default, namespace: shop, name: more-%d, labels: {app: %s, k8s.kuma.io/service-account: web},
  networking: {address: 192.0.2.9, inbound: [{name: http, port: 80}]}}`, n%3, app))
	case 1:
		s.put(t, fmt.Sprintf(`{type: MeshService, mesh: default, namespace: shop, name: of-%d,
  spec: {selector: {dataplaneLabels: {matchLabels: {app: %s}}}, ports: [{port: 80, appProtocol: %s}]}}`, n%3, app, pick("http", "tcp")))
	case 2:
		s.put(t, fmt.Sprintf(`{type: MeshTimeout, mesh: default, name: t-%d, spec: {to: [{targetRef: {kind: Mesh}, default: {connectionTimeout: 3s}}]}}`, n))
	case 3, 4, 5:
		key := resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default", Name: fmt.Sprintf("p-%d", n)}
		if _, err := s.store.Apply(context.Background(), store.Batch{Ops: []store.Op{{Delete: key}}}); err != nil {
			t.Fatal(err)
		}
	default:
		target := pick("{kind: Mesh}", "{kind: Dataplane, labels: {app: "+app+"}}", "{kind: Dataplane, labels: {app: "+app+", version: v2}}",
			"{kind: Dataplane, labels: {app: "+app+"}, sectionName: http}")
		id := func() string {
			return pick("{type: Exact, value: "+shop+pick("web", "backend")+"}", "{type: Exact, value: "+pay+"audit}", "{type: Prefix, value: "+pay+"}")
		}
		s.put(t, fmt.Sprintf(`{type: MeshTrafficPermission, mesh: default, name: p-%d, spec: {targetRef: %s, rules: [{default: {
  %s: [{spiffeId: %s}], allow: [{spiffeId: %s%s}]}}]}}`, n, target, pick("deny", "allowWithShadowDeny"), id(), id(), pick("", ", method: [GET]", ", path: {type: Prefix, value: /reports}")))
	}
}
