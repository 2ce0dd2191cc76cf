package zone_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/zone"
)

// suggested is a suggestion of permissions.
type suggested struct {
	Resources []json.RawMessage
	Observed  int
	Warnings  []string
}

// TestSuggestionOpensNothing: the suggestion for an allowed request allows that request again, but not one on a path
// below it, which was denied. With prefixes it would allow both, and reports that.
func TestSuggestionOpensNothing(t *testing.T) {
	t.Parallel()
	z := runZone(t, func(c *zone.Config) { c.AccessLog = "als" })
	service, _ := application(t)
	web := freePort(t)
	z.apply("dataplanes/backend", fmt.Sprintf(`{"type": "Dataplane", "mesh": "default", "name": "backend", "networking": {"address": "127.0.0.1", "inbound": [
		{"name": "web", "port": %d, "servicePort": %d, "protocol": "http"}]}}`, web, service))
	z.apply("meshtrafficpermissions/p", fmt.Sprintf(`{"type": "MeshTrafficPermission", "mesh": "default", "name": "p", "spec": {"rules": [{"default": {"allow": [
		{"spiffeId": {"type": "Exact", "value": "%salice"}, "path": {"type": "Exact", "value": "/orders"}, "method": ["POST"]}]}}]}}`, spiffe))
	(&world{t: t, address: z.addresses["xds"]}).startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	alice := z.client("alice")
	lets := func(path string) bool { return send(t, alice, http.MethodPost, web, path) == http.StatusOK }
	eventually(t, "alice gets in", func() bool { return status(httpClient(alice), web) == http.StatusForbidden && lets("/orders") })
	if lets("/orders/1") {
		t.Fatal("the policy allows more than it says")
	}
	var got suggested
	const below = "(POST /orders"
	eventually(t, "both were seen", func() bool {
		got = suggested{}
		z.get("/_suggest/permissions?dataplane=backend&since=1h", &got)
		return got.Observed > 0 && strings.Contains(strings.Join(got.Warnings, "\n"), below)
	})
	if text := strings.Join(got.Warnings, "\n"); strings.Contains(text, "ALLOWED") {
		t.Errorf("exact paths allow what was denied: %s", text)
	}
	var prefixes suggested
	z.get("/_suggest/permissions?dataplane=backend&since=1h&paths=prefix", &prefixes)
	if text := strings.Join(prefixes.Warnings, "\n"); !strings.Contains(text,
		"ALLOWED by it, though default denied them: 1 of "+spiffe+"alice (POST /orders/1)") {
		t.Errorf("prefixes: %s", text)
	}
	replace := func(with suggested, below bool) {
		t.Helper()
		if code, answer := z.call(http.MethodDelete, "/meshes/default/meshtrafficpermissions/p", ""); code != http.StatusOK {
			t.Fatalf("%d %s", code, answer)
		}
		eventually(t, "everybody is denied", func() bool { return !lets("/orders") })
		z.apply("meshtrafficpermissions/p", strings.Replace(string(with.Resources[0]), `"backend-observed"`, `"p"`, 1))
		eventually(t, "alice gets in again", func() bool { return lets("/orders") })
		if lets("/orders/1") != below {
			t.Errorf("/orders/1 passes: %t", !below)
		}
	}
	replace(got, false)
	replace(prefixes, true)
}
