package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// TestEmptyParametersOfChanges sends parameters without a value, which a script does that has lost it. A change must not be
// larger by that: the mark of held deletions, left empty, would accept all of them.
func TestEmptyParametersOfChanges(t *testing.T) {
	done := func(w http.ResponseWriter, r *http.Request) error {
		t.Errorf("%s was done", r.URL)
		return nil
	}
	f := serve(t, resources.Home{}, func(s *api.Server) {
		s.Handle(api.RouteZoneAcceptDeletes, done)
		s.Handle(api.RouteZoneResync, done)
	})
	for _, tt := range []struct{ method, path, body, field string }{
		{"POST", "/zones/zone-1/_accept-deletes?held=", "", "held"},
		{"POST", "/zones/zone-1/_accept-deletes?held", "", "held"},
		{"POST", "/zones/zone-1/_accept-deletes?type=", "", "type"},
		{"POST", "/zones/zone-1/_resync?type=", "", "type"},
		{"POST", "/_batch?dryRun=", permission("p"), "dryRun"},
		{"PUT", "/meshes/default/meshtrafficpermissions/p?dryRun=", permission("p"), "dryRun"},
	} {
		_, e := f.call(t, tt.method, tt.path, tt.body)
		if e == nil || e.Status != http.StatusBadRequest || len(e.InvalidParameters) == 0 ||
			e.InvalidParameters[0].Field != tt.field {
			t.Errorf("%s %s: got %v", tt.method, tt.path, e)
		}
	}
}

// TestUnknownParameters sends parameters that the request does not take. Each is refused by name, with the nearest
// valid one, and nothing is done.
func TestUnknownParameters(t *testing.T) {
	f := alone(t)
	const list, item = "/meshes/default/meshtrafficpermissions", "/meshes/default/meshtrafficpermissions/p"
	f.mustCall(t, "PUT", item, permission("p"))
	before := contents(f.store)
	for _, tt := range []struct{ method, path, field, reason string }{
		{"POST", "/_batch?dry_run=server", "dry_run", "did you mean dryRun?"},
		{"POST", "/_batch?dryrun=server", "dryrun", "did you mean dryRun?"},
		{"POST", "/_batch?dryRun=server&dry-run=true", "dry-run", "did you mean dryRun?"},
		{"POST", "/_batch?namespace=team", "namespace", "want one of dryRun"},
		{"PUT", item + "?DryRun=server", "DryRun", "did you mean dryRun?"},
		{"PUT", item + "?namspace=team", "namspace", "did you mean namespace?"},
		{"PUT", item + "?zone=zone-2", "zone", "want one of namespace, dryRun"},
		{"DELETE", item + "?zone=zone-2", "zone", `no query parameter "zone"`},
		{"DELETE", item + "?dry_run=server", "dry_run", "no dry run"},
		{"DELETE", item + "?force", "force", `no query parameter "force"`},
		{"GET", list + "?namspace=team", "namspace", "did you mean namespace?"},
		{"GET", list + "?filtre[labels.a]=b", "filtre[labels.a]", "no query parameter"},
		{"GET", item + "?fromat=k8s", "fromat", "did you mean format?"},
		{"GET", "/policies?namespace=team", "namespace", "want one of revision"},
		{"POST", "/_can-i?dryRun=server", "dryRun", "no dry run"},
		{"POST", "/_can-i?namespace=team", "namespace", "takes no query parameters"},
	} {
		body := strings.ReplaceAll(permission("p"), "ns/'", "ns/x/'")
		if tt.method == http.MethodGet || tt.method == http.MethodDelete {
			body = ""
		}
		_, e := f.call(t, tt.method, tt.path, body)
		if e == nil || e.Status != http.StatusBadRequest || len(e.InvalidParameters) == 0 ||
			e.InvalidParameters[0].Field != tt.field || !strings.Contains(e.InvalidParameters[0].Reason, tt.reason) {
			t.Errorf("%s %s: got %v", tt.method, tt.path, e)
		}
	}
	if after := contents(f.store); after != before {
		t.Errorf("something was stored: %s", after)
	}
}
