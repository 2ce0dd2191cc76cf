package zone_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/causeway-mesh/causeway/resources"
)

// TestRetriesAtOtherEndpoints shows the fields of a MeshRetry that choose the endpoint of what is sent again, in HTTP
// and gRPC: hostSelection and hostSelectionMaxAttempts among endpoints of one priority, of which one fails always, and
// updateFrequency among priorities, of which the first one fails.
func TestRetriesAtOtherEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	both := "[{address: 127.0.0.1, port: %d}, {address: 127.0.0.1, port: %d, priority: %d}]"
	for _, one := range []struct {
		name, protocol string
		good, bad      int
	}{
		{"web", "http", answering(t, http.StatusOK), answering(t, http.StatusServiceUnavailable)},
		{"calls", "grpc", answeringCalls(t, codes.OK), answeringCalls(t, codes.Unavailable)},
	} {
		for suffix, priority := range map[string]int{"": 0, "-tiers": 1} {
			w.apply(fmt.Sprintf("{type: MeshExternalService, mesh: default, name: %s%s, spec: {match: {port: 80, protocol: %s}, endpoints: "+both+"}}",
				one.name, suffix, one.protocol, one.bad, one.good, priority))
		}
	}
	ports, e := w.caller("caller", "{kind: MeshExternalService, name: web}", "{kind: MeshExternalService, name: web-tiers}",
		"{kind: MeshExternalService, name: calls}", "{kind: MeshExternalService, name: calls-tiers}")
	// By chance, so that a second attempt may meet the endpoint of the first.
	w.apply(`{type: MeshLoadBalancingStrategy, mesh: default, name: chance, spec: {to: [{targetRef: {kind: Mesh}, default: {loadBalancer: {type: Random}}}]}}`)
	calls := newRawGRPC(t)
	for _, protocol := range []struct {
		list, again string
		port        int // of the service of one priority; the next is of the one of two
		ok          func(port int) bool
	}{
		{"http", "'503'", 0, func(port int) bool { return ok(port, "/")() }},
		{"grpc", "Unavailable", 2, func(port int) bool { return calls.call(port) == nil }},
	} {
		// answered returns how many of so many requests were answered.
		answered := func(port, of int) (n int) {
			for range of {
				if protocol.ok(port) {
					n++
				}
			}
			return n
		}
		equals, tiers := ports[protocol.port], ports[protocol.port+1]
		for _, row := range []struct {
			name, conf string
			seen       func() bool
		}{
			{"a few attempts without luck", "hostSelection: [{predicate: OmitPreviousHosts}], hostSelectionMaxAttempts: 1", func() bool { n := answered(equals, 80); return n > 40 && n < 80 }},
			{"always another endpoint", "hostSelection: [{predicate: OmitPreviousHosts}], hostSelectionMaxAttempts: 40", func() bool { return answered(equals, 80) == 80 }},
			{"any endpoint of the priority", "hostSelection: [{predicate: OmitPreviousPriorities}], hostSelectionMaxAttempts: 40", func() bool { n := answered(equals, 80); return n > 40 && n < 80 }},
			{"another priority too late", "hostSelection: [{predicate: OmitPreviousPriorities, updateFrequency: 2}]", func() bool { return answered(tiers, 20) == 0 }},
			{"another priority at once", "hostSelection: [{predicate: OmitPreviousPriorities, updateFrequency: 1}]", func() bool { return answered(tiers, 20) == 20 }},
		} {
			w.apply(fmt.Sprintf("{type: MeshRetry, mesh: default, name: p, spec: {to: [{targetRef: {kind: Mesh}, default: {%s: {numRetries: 1, retryOn: [%s], %s}}}]}}",
				protocol.list, protocol.again, row.conf))
			eventually(t, protocol.list+": "+row.name, row.seen)
		}
		w.remove(resources.TypeMeshRetry, "p")
	}
	e.refusedNothing()
}

// answering runs an application that answers everything with one status.
func answering(t *testing.T, status int) int {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().(*net.TCPAddr).Port
}

// answeringCalls runs a gRPC application that answers every call with one code.
func answeringCalls(t *testing.T, code codes.Code) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(&emptypb.Empty{}); err != nil || code != codes.OK {
			return grpcstatus.Error(code, "as always")
		}
		return stream.SendMsg(&emptypb.Empty{})
	}))
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); must(t, <-done) })
	return listener.Addr().(*net.TCPAddr).Port
}
