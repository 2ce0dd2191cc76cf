package zone_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// TestRepeatsWithoutEnd: counts of a producer's policy that a proxy runs through for one request, as an earlier version
// stored them, do not stop the worker of another owner's proxy. Each row's request is answered, soon, and the next too.
func TestRepeatsWithoutEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var hits atomic.Int64
	app := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		out.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(app.Close)
	const service = "{type: MeshExternalService, mesh: default, name: %s, spec: {match: {port: 80, protocol: %s}, endpoints: [{address: 127.0.0.1, port: %d}]}}"
	w.apply(fmt.Sprintf(service, "web", "http", app.Listener.Addr().(*net.TCPAddr).Port))
	w.apply(fmt.Sprintf(service, "dead", "tcp", freePort(t)))
	ports, e := w.caller("caller", "{kind: MeshExternalService, name: web}", "{kind: MeshExternalService, name: dead}")
	answered := func() bool { code, _ := plain(ports[0], "/"); return code == http.StatusServiceUnavailable }
	eventually(t, "the service answers", answered)
	mirrors := strings.Repeat("{type: RequestMirror, requestMirror: {backendRef: {kind: MeshExternalService, name: web}}}, ", 400)
	for _, row := range []struct {
		typ                  resources.Type
		item, field, problem string
		seen                 func() bool
	}{
		{resources.TypeMeshRetry, "default", "{http: {numRetries: 3, retryOn: ['503'], hostSelectionMaxAttempts: 4000000000}}", "hostSelectionMaxAttempts: the proxy takes 100", answered},
		{resources.TypeMeshRetry, "default", "{http: {numRetries: 4000000000, retryOn: ['503'], backOff: {baseInterval: 1ms, maxInterval: 1ms}}}", "numRetries: the proxy takes 100", answered},
		{resources.TypeMeshRetry, "default", "{tcp: {maxConnectAttempt: 4000000000}}", "tcp.maxConnectAttempt: the proxy takes 100", func() bool { return closes(ports[1]) }},
		{resources.TypeMeshLoadBalancingStrategy, "default", "{loadBalancer: {type: LeastRequest, leastRequest: {choiceCount: 4000000000}}}", "choiceCount: the proxy takes 100", answered},
		{resources.TypeMeshHTTPRoute, "rules", "[{matches: [{path: {type: PathPrefix, value: /}}], default: {filters: [" + mirrors + "]}}]", "more than 16 mirrors", func() bool {
			before := hits.Load()
			code, _ := plain(ports[0], "/")
			return code == http.StatusServiceUnavailable && hits.Load()-before <= 17*4 // each may be sent again
		}},
	} {
		w.apply(fmt.Sprintf("{type: %s, mesh: default, name: p, spec: {to: [{targetRef: {kind: MeshExternalService, name: web}, %[2]s: %[3]s}, {targetRef: {kind: MeshExternalService, name: dead}, %[2]s: %[3]s}]}}",
			row.typ, row.item, row.field))
		w.settles(row.problem)
		for n := range 2 {
			if !row.seen() {
				t.Errorf("%s: request %d is not answered", row.problem, n+1)
			}
		}
		w.hasProblem("caller", row.problem)
		w.remove(row.typ, "p")
		w.settles(row.problem)
	}
	e.refusedNothing()
}

// closes reports whether the proxy gives a connection up.
func closes(port int) bool {
	c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), patience)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, err = c.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}
