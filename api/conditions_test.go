package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestConditions checks that the conditions of two functions appear in items and lists, after those of the status, and
// are never stored.
func TestConditions(t *testing.T) {
	memory := store.NewMemory()
	server := api.New(api.Config{Store: memory, Home: resources.Home{}})
	for _, reason := range []string{"First", "Second"} {
		server.AddConditions(func(r *resources.Resource) []resources.Condition {
			if r.Name != "shown" {
				return nil
			}
			return []resources.Condition{{Type: resources.ConditionSynced, Status: resources.ConditionFalse,
				Reason: reason, Message: "m"}}
		})
	}
	spec, err := resources.NewSpec(resources.TypeMeshTrust, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	var ops []store.Op
	for _, name := range []string{"shown", "silent"} {
		key := resources.Key{Type: resources.TypeMeshTrust, Mesh: "default", Name: name}
		ops = append(ops, store.Op{Put: &resources.Resource{Key: key, Spec: spec,
			Status: []byte(`{"a":1,"conditions":[{"type":"Own"}]}`)}})
	}
	if _, err := memory.Apply(t.Context(), store.Batch{Ops: ops}); err != nil {
		t.Fatal(err)
	}
	const want = `"status":{"a":1,"conditions":[{"type":"Own"},{"type":"Synced","status":"False","reason":"First","message":"m"},{"type":"Synced","status":"False","reason":"Second","message":"m"}]}`
	for path, times := range map[string]int{"/meshes/default/meshtrusts/shown": 1,
		"/meshes/default/meshtrusts/silent": 0, "/meshes/default/meshtrusts": 1} {
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		body := strings.NewReplacer("\n", "", " ", "").Replace(answer.Body.String())
		if got := strings.Count(body, want); got != times {
			t.Errorf("%s: want %d times the conditions, got %d: %s", path, times, got, body)
		}
	}
	if got := string(memory.Snapshot().Get(ops[0].Put.Key).Status); strings.Contains(got, "First") {
		t.Errorf("a condition was stored: %s", got)
	}
}
