package zone_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestEnvoyTakesLongNames: the names of a proxy's secrets contain its own, which may be so long that Protobuf writes its
// length in two bytes. Envoy takes the listeners and clusters that name them, and calls pass.
func TestEnvoyTakesLongNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(`{type: MeshTrafficPermission, mesh: default, name: all, spec: {rules: [{default: {allow: [{spiffeId: {type: Prefix, value: "spiffe://"}}]}}]}}`)
	// What precedes the name in a message is then a 1, for the shorter one, or a 2.
	const shorter = 150
	for app, length := range map[string]int{"shorter": shorter, "longest": resources.MaxNameBytes} {
		name := strings.Repeat("n", length)
		called := w.handler(name, app, answers(app))
		ports, calling := w.caller("caller-of-"+app, fmt.Sprintf("{kind: MeshService, name: %s}", app))
		eventually(t, app+" to answer", func() bool { code, _ := plain(ports[0], "/"); return code == http.StatusOK })
		if dump := called.get("/config_dump"); !strings.Contains(dump, "identity_cert:default/"+name) {
			t.Errorf("%s: the secret of the proxy does not have its name", app)
		}
		called.refusedNothing()
		calling.refusedNothing()
	}
}
