package callers_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/callers"
)

// TestPatchesAreDoubts checks that the matrix names patches by which proxies may refuse more, and, unguarded, admit more
// than it says, and only those of proxies that are shown.
func TestPatchesAreDoubts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	reasons := func(query string) string {
		var all []string
		for _, u := range s.ask(t, query).Unknown {
			if u.Since.IsZero() {
				t.Errorf("without since when: %+v", u)
			}
			all = append(all, u.Reason)
		}
		return strings.Join(all, "; ")
	}
	if got := reasons(""); got != "" {
		t.Errorf("without patches: %s", got)
	}
	s.put(t, `{type: MeshProxyPatch, mesh: default, name: closes, spec: {targetRef: {kind: Dataplane, name: backend-1, namespace: shop}, default: {appendModifications: [{cluster: {operation: Remove}}]}}}`)
	const refusing, admitting = "whether proxies refuse by a patch what permissions allow is unknown: ",
		"whether proxies admit by a patch what permissions deny is unknown: "
	if got := reasons("service=backend"); got != refusing+"kri_mpp_default_zone-1__closes_" {
		t.Errorf("got %s", got)
	}
	if got := reasons("service=ledger"); got != "" {
		t.Errorf("of services whose proxies have none: %s", got)
	}
	s.put(t, `{type: MeshProxyPatch, mesh: default, name: opens, labels: {causeway.io/unguarded: "true"}, spec: {default: {appendModifications: [{cluster: {operation: Remove}}]}}}`)
	if got := reasons("service=ledger"); got != refusing+"kri_mpp_default_zone-1__opens_; "+admitting+"kri_mpp_default_zone-1__opens_" {
		t.Errorf("got %s", got)
	}
}

// TestZoneThatLacksPermissionsIsADoubt checks that the global says which zone has not taken its changes, or holds
// removals, once, and that of one that is away nothing else is said.
func TestZoneThatLacksPermissionsIsADoubt(t *testing.T) {
	t.Parallel()
	s, since := newSite(t), time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	away := false
	server := api.New(api.Config{Store: s.store, Home: resources.Home{}})
	callers.Register(server, callers.Config{Store: s.store, Status: s.store,
		Absent: func(string) *api.Unknown {
			if away {
				return &api.Unknown{Since: since, Reason: "offline"}
			}
			return nil
		},
		Lacking: func(string) []api.Unknown {
			return []api.Unknown{{Since: since, Reason: "late"}, {Since: since, Reason: "holds"}}
		}})
	for _, want := range []string{"late, holds", "offline"} {
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/meshes/default/_access", http.NoBody))
		var answer callers.Answer
		if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, why := range answer.Unknown {
			got = append(got, why.Reason)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
		away = true
	}
}

// TestReplicaWithoutItsStoreIsADoubt checks that a replica that etcd does not answer says since when it does not know
// whether there are newer policies.
func TestReplicaWithoutItsStoreIsADoubt(t *testing.T) {
	t.Parallel()
	s, since := newSite(t), time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	server := api.New(api.Config{Store: s.store, Home: resources.Home{}})
	callers.Register(server, callers.Config{Store: s.store, Status: s.store,
		Outdated: func() (time.Time, bool) { return since, true }})
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/meshes/default/_access", http.NoBody))
	var answer callers.Answer
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Unknown) != 1 || !answer.Unknown[0].Since.Equal(since) || !strings.Contains(answer.Unknown[0].Reason, "etcd") {
		t.Errorf("got %+v", answer.Unknown)
	}
}
