package inspect_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestGatewaysThatNobodyServes: apply and conditions say that no Dataplane serves a MeshGateway, and that a policy of one
// selects none, until there is one.
func TestGatewaysThatNobodyServes(t *testing.T) {
	s := newSite(t, "zone-1")
	written := func(path, body string) string {
		t.Helper()
		code, answer := s.ask(t, http.MethodPut, path, body)
		var said struct{ Warnings []string }
		if err := json.Unmarshal(answer, &said); err != nil || code/100 != 2 {
			t.Fatalf("%s: %d %s", path, code, answer)
		}
		return strings.Join(said.Warnings, "; ")
	}
	const gateway, policy = "/meshes/default/meshgateways/edge", "/meshes/default/meshtimeouts/honest"
	write := func() (of, by string) {
		of = written(gateway, `{"type":"MeshGateway","mesh":"default","name":"edge","selectors":[{"match":{"kuma.io/service":"edge"}}],"conf":{"listeners":[{"port":80,"protocol":"HTTP"}]}}`)
		by = written(policy, `{"type":"MeshTimeout","mesh":"default","name":"honest","spec":{"targetRef":{"kind":"MeshGateway","name":"edge"},"to":[{"targetRef":{"kind":"Mesh"},"default":{"idleTimeout":"5s"}}]}}`)
		return of, by
	}
	const says = "selects no Dataplane in zone-1"
	if of, by := write(); !strings.Contains(of, says) || !strings.Contains(by, says) {
		t.Errorf("apply: %q, and of the policy %q", of, by)
	}
	for _, path := range []string{gateway, policy} {
		if _, read := s.ask(t, http.MethodGet, path, ""); !strings.Contains(string(read), says) {
			t.Errorf("conditions of %s: %s", path, read)
		}
	}
	written("/meshes/default/dataplanes/edge-1", `{"type":"Dataplane","mesh":"default","name":"edge-1","networking":{"address":"192.0.2.1","gateway":{"type":"BUILTIN","tags":{"kuma.io/service":"edge"}}}}`)
	if of, by := write(); of != "" || by != "" {
		t.Errorf("apply: %q, and of the policy %q", of, by)
	}
	for _, path := range []string{gateway, policy} {
		if _, read := s.ask(t, http.MethodGet, path, ""); strings.Contains(string(read), says) {
			t.Errorf("conditions of %s: %s", path, read)
		}
	}
	if _, touched := s.ask(t, http.MethodGet, policy+"/_resources/dataplanes", ""); !strings.Contains(string(touched), "edge-1") {
		t.Errorf("touched: %s", touched)
	}
}
