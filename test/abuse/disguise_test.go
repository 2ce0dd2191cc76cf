package abuse

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

const (
	disguised = "disguised"

	deniedOfDisguises = `{type: MeshTrafficPermission, mesh: default, name: denied, spec: {default: {
  deny: [{path: {type: Prefix, value: /api/admin}}, {method: DELETE}],
  allow: [{spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/"}}]}}}`
)

// TestDisguisesOfWhatIsDenied checks that a client that may call everything except a path and a method reaches neither
// by another spelling, through a real Envoy that a real zone configures. Each twin has the same shape and names
// something that is allowed.
func TestDisguisesOfWhatIsDenied(t *testing.T) {
	t.Parallel()
	type request struct{ method, path string }
	rows := []struct {
		name    string
		attempt request
		status  int
		twin    request
	}{
		{"the path itself", request{"GET", "/api/admin"}, http.StatusForbidden, request{"GET", "/api/users"}},
		{"a parameter of the first segment", request{"GET", "/api;x/admin"}, http.StatusForbidden,
			request{"GET", "/api;x/users"}},
		{"a parameter of an empty segment in front", request{"GET", "/;x/api/admin"}, http.StatusForbidden,
			request{"GET", "/;x/api/users"}},
		{"a parameter of an empty segment within", request{"GET", "/api/;/admin"}, http.StatusForbidden,
			request{"GET", "/api/;/users"}},
		{"an escaped parameter", request{"GET", "/api%3b/admin"}, http.StatusForbidden, request{"GET", "/api%3b/users"}},
		{"an escape within an escape", request{"GET", "/api%252fadmin"}, http.StatusForbidden,
			request{"GET", "/api%20users"}},
		{"a dot segment with a parameter", request{"GET", "/x/..;/api/admin"}, http.StatusForbidden,
			request{"GET", "/x/.;x.y/api/users"}},
		{"the method itself", request{"DELETE", "/x"}, http.StatusForbidden, request{"PUT", "/x"}},
		{"the method in lower case", request{"delete", "/x"}, http.StatusBadRequest, request{"POST", "/x"}},
		{"the method in mixed case", request{"Delete", "/x"}, http.StatusBadRequest, request{"PATCH", "/x"}},
		{"another method by the query", request{"POST", "/x?_method=DELETE"}, http.StatusForbidden,
			request{"POST", "/x?method=DELETE"}},
		{"another method by the query, as PHP reads it", request{"POST", "/x?.method=DELETE"}, http.StatusForbidden,
			request{"POST", "/x?x.method=DELETE"}},
		{"a dot segment, its end escaped", request{"GET", "/x/.%2e/api/admin"}, http.StatusForbidden,
			request{"GET", "/x/.%2e/api/users"}},
		{"a backslash, escaped", request{"GET", "/api%5cadmin"}, http.StatusBadRequest, request{"GET", "/api/users%20"}},
		{"a dot at the end", request{"GET", "/api./admin."}, http.StatusForbidden, request{"GET", "/api./users."}},
		{"overlong UTF-8", request{"GET", "/api%c0%afadmin"}, http.StatusForbidden, request{"GET", "/api%c3%a9users"}},
		{"a NUL", request{"GET", "/api/admin%00.png"}, http.StatusBadRequest, request{"GET", "/api/users.png"}},
	}
	inbound, clients := startDisguised(t)
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		for _, row := range rows {
			t.Run(protocol+" "+row.name, func(t *testing.T) {
				before := inbound.Count()
				wantStatus(t, clients[protocol], inbound.Port, row.attempt.method, row.attempt.path, row.status)
				if n := inbound.Count() - before; n != 0 {
					t.Errorf("the application got %d requests", n)
				}
				wantStatus(t, clients[protocol], inbound.Port, row.twin.method, row.twin.path, http.StatusOK)
				if n := inbound.Count() - before; n != 1 {
					t.Errorf("the application got %d requests of the twin", n)
				}
			})
		}
	}
}

func wantStatus(t *testing.T, c *cluster.Client, port int, method, path string, want int) {
	t.Helper()
	if got, _, err := c.Do(t.Context(), method, port, path); err != nil || got != want {
		t.Errorf("%s %s: got %d, %v, want %d", method, path, got, err, want)
	}
}

// startDisguised runs a zone with an application behind Envoy, with the denials of the rows, and returns clients by
// protocol.
func startDisguised(t *testing.T) (*cluster.Inbound, map[string]*cluster.Client) {
	t.Helper()
	w := newCluster(t)
	global, err := w.StartGlobal(t.Context(), cluster.GlobalConfig{})
	w.must(err)
	w.zone1, err = w.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: global})
	w.must(err)
	inbound := w.workload(w.zone1, "", disguised).Inbound("http")
	identity, err := cluster.RegisterClient(t.Context(), cluster.WorkloadConfig{Zone: w.zone1, Mesh: "default",
		Name: "client"}, "zone-1")
	w.must(err)
	clients := map[string]*cluster.Client{"HTTP/1.1": cluster.NewClient(identity, false),
		"HTTP/2": cluster.NewClient(identity, true)}
	for _, c := range clients {
		t.Cleanup(c.Close)
	}
	w.apply(w.zone1, deniedOfDisguises)
	w.eventually("the client to be allowed", func(ctx context.Context) error {
		status, _, err := clients["HTTP/2"].Get(ctx, inbound.Port, "/")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("got %d", status)
		}
		return err
	})
	return inbound, clients
}
