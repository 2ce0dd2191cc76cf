package zone_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// TestInboundRequestLimits shows maxRequests, maxConnectionPools and maxRetries of a MeshCircuitBreaker in rules. An
// inbound sends nothing again by itself, so a MeshProxyPatch makes it.
func TestInboundRequestLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var n counter
	srv := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if n.add(); r.URL.Path == "/flaky" && n.value()%2 == 1 {
			out.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(srv.Close)
	calls := newRawGRPC(t)
	web, streams := freePort(t), freePort(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, networking: {address: 127.0.0.1, inbound: [
  {name: web, port: %d, servicePort: %d, protocol: http}, {name: calls, port: %d, servicePort: %d, protocol: grpc}]}}
---
{type: MeshTrafficPermission, mesh: default, name: all, spec: {rules: [{default: {allow: [{spiffeId: {type: Prefix, value: "spiffe://"}}]}}]}}`,
		web, srv.Listener.Addr().(*net.TCPAddr).Port, streams, calls.port))
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	client, conn := w.client("client"), grpcClient(t, w.certificate("client"), streams)
	ask := func(path string) int { return askAs(t, client, "GET", web, path).status }
	call := func(do string) codes.Code {
		ctx := metadata.AppendToOutgoingContext(context.Background(), "x-do", do, "x-id", newID())
		return grpcstatus.Code(conn.Invoke(ctx, "/test.Calls/Do", &emptypb.Empty{}, &emptypb.Empty{}, grpc.WaitForReady(true)))
	}
	count := func(section, name string) int {
		n, _ := strconv.Atoi(e.stats("^cluster.self_inbound_dp_" + section + "." + name + "$")["cluster.self_inbound_dp_"+section+"."+name])
		return n
	}
	limit := func(limits string) {
		w.apply("{type: MeshCircuitBreaker, mesh: default, name: limits, spec: {rules: [{default: {connectionLimits: {" + limits + "}}}]}}")
	}
	eventually(t, "the application", func() bool { return ask("/") == http.StatusOK && call("ok") == codes.OK })

	// several makes calls at once that last, and returns how many were answered and how many were too many.
	several := func() (answered, tooMany int) {
		var all sync.WaitGroup
		var mu sync.Mutex
		for range 5 {
			all.Go(func() {
				code := call("hang")
				mu.Lock()
				defer mu.Unlock()
				switch code {
				case codes.OK:
					answered++
				case codes.Unavailable:
					tooMany++
				default:
					t.Errorf("a call that lasts: %s", code)
				}
			})
		}
		all.Wait()
		return answered, tooMany
	}
	if answered, _ := several(); answered != 5 {
		t.Fatalf("without limits, %d of 5 calls were answered", answered)
	}
	limit("maxRequests: 2")
	eventually(t, "two calls at once to be answered, and three not", func() bool {
		answered, tooMany := several()
		return answered == 2 && tooMany == 3
	})

	limit("maxConnectionPools: 0")
	before := count("web", "upstream_cx_pool_overflow")
	eventually(t, "a request that needs a pool to be answered with 503", func() bool { return ask("/") == http.StatusServiceUnavailable })
	if now := count("web", "upstream_cx_pool_overflow"); now <= before {
		t.Errorf("pools over the limit: %d, then %d", before, now)
	}

	w.apply(`{type: MeshProxyPatch, mesh: default, name: again, spec: {default: {appendModifications: [
  {virtualHost: {operation: Patch, match: {origin: inbound}, value: "retry_policy: {retry_on: 5xx, num_retries: 1}"}}]}}}`)
	limit("maxRetries: 9")
	flaky := func() (failed int) {
		for range 8 {
			if ask("/flaky") != http.StatusOK {
				failed++
			}
		}
		return failed
	}
	eventually(t, "what failed to be sent again", func() bool { return flaky() == 0 })
	limit("maxRetries: 0")
	eventually(t, "nothing to be sent again", func() bool { return flaky() > 0 && count("web", "upstream_rq_retry_overflow") > 0 })
	if !strings.Contains(e.get("/clusters"), "self_inbound_dp_web::default_priority::max_retries::0\n") {
		t.Error("the proxy does not say that limit")
	}
	w.remove(resources.TypeMeshCircuitBreaker, "limits")
	eventually(t, "what failed to be sent again without the limit", func() bool { return flaky() == 0 })
	e.refusedNothing()
}
