package zone_test

import (
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
	w.allowAll()
	called := w.handler(strings.Repeat("n", resources.MaxNameBytes), "backend", answers("backend"))
	ports, calling := w.caller("caller", "{kind: MeshService, name: backend}")
	eventually(t, "the service to answer", func() bool { code, _ := plain(ports[0], "/"); return code == http.StatusOK })
	if dump := called.get("/config_dump"); !strings.Contains(dump, "identity_cert") ||
		!strings.Contains(dump, strings.Repeat("n", resources.MaxNameBytes)) {
		t.Error("the secret of the proxy does not have its name")
	}
	called.refusedNothing()
	calling.refusedNothing()
}
