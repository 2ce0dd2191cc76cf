package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	grpcstatus "google.golang.org/grpc/status"
)

// healthProto is what the tools need of grpc.health.v1, so that they ask for nothing but what is measured.
const healthProto = `syntax = "proto3";
package grpc.health.v1;
message HealthCheckRequest { string service = 1; }
message HealthCheckResponse {
  enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; }
  ServingStatus status = 1;
}
service Health { rpc Check(HealthCheckRequest) returns (HealthCheckResponse); }
`

// behaving serves grpc.health.v1, and reflection. It does what the header x-do says: "once" fails a call of its x-id
// once, "late" answers after 2 s, "flaky" fails every other call.
func behaving(t *testing.T) (port int) {
	t.Helper()
	var seen sync.Map
	var calls atomic.Int64
	do := func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		id := strings.Join(md.Get("x-id"), "")
		switch strings.Join(md.Get("x-do"), "") {
		case "once":
			if _, again := seen.LoadOrStore(id, true); !again {
				return nil, grpcstatus.Error(codes.Unavailable, "once")
			}
		case "flaky":
			if calls.Add(1)%2 == 1 {
				return nil, grpcstatus.Error(codes.Unavailable, "flaky")
			}
		case "late":
			select {
			case <-time.After(2 * time.Second):
			case <-ctx.Done():
			}
		}
		return next(ctx, request)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := grpc.NewServer(grpc.UnaryInterceptor(do))
	healthgrpc.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); must(t, <-done) })
	return listener.Addr().(*net.TCPAddr).Port
}

// caller calls the service by the outbound, with real tools.
type caller struct {
	*observed
	address, proto string
	ids            atomic.Int64
}

// grpcurl makes one call that the server is told how to handle, and returns what the tool says.
func (c *caller) grpcurl(ctx context.Context, do string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, briefly)
	defer cancel()
	out, err := exec.CommandContext(ctx, tool(c.t, "grpcurl"), "-plaintext", "-import-path", "/", "-proto", c.proto, "-H", "x-do: "+do,
		"-H", fmt.Sprintf("x-id: %d", c.ids.Add(1)), "-d", "{}", c.address, "grpc.health.v1.Health/Check").CombinedOutput()
	return string(out), err
}

// serving reports whether a call is answered.
func (c *caller) serving(ctx context.Context, do string) error {
	said, err := c.grpcurl(ctx, do)
	if err != nil || !strings.Contains(said, `"SERVING"`) {
		return fmt.Errorf("%s: %w: %s", do, err, said)
	}
	return nil
}

// failing reports whether a call fails with a code.
func (c *caller) failing(ctx context.Context, do, code string) error {
	said, err := c.grpcurl(ctx, do)
	if err == nil || !strings.Contains(said, "Code: "+code) {
		return fmt.Errorf("%s: %w: %s", do, err, said)
	}
	return nil
}

// ghz makes many calls, and returns how many ended with each code.
func (c *caller) ghz(ctx context.Context, do string, n int) (map[string]int, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, tool(c.t, "ghz"), "--insecure", "--proto", c.proto, "--call", "grpc.health.v1.Health.Check", "-d", "{}",
		"-m", fmt.Sprintf(`{"x-do": %q}`, do), "-n", fmt.Sprint(n), "-c", "5", "--format", "json", c.address).Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	var report struct {
		Codes map[string]int `json:"statusCodeDistribution"`
	}
	return report.Codes, json.Unmarshal(out, &report)
}

// exactly reports whether so many of calls were answered and the others were Unavailable.
func (c *caller) exactly(ctx context.Context, do string, n, answered int) error {
	got, err := c.ghz(ctx, do, n)
	if err == nil && (got["OK"] != answered || got["Unavailable"] != n-answered) {
		err = fmt.Errorf("%d of %d are to be answered: %v", answered, n, got)
	}
	return err
}

// TestCounterpartsCall: grpcurl and ghz call a gRPC service by way of two proxies, and see what MeshRetry, MeshTimeout,
// MeshFaultInjection and MeshRateLimit say.
func TestCounterpartsCall(t *testing.T) {
	o := newObserved(t, "grpc", behaving(t))
	c := &caller{observed: o, address: fmt.Sprintf("127.0.0.1:%d", o.caller.Outbound("backend")), proto: writeFile(t, "health.proto", healthProto)}
	o.soon("a call by grpcurl", func(ctx context.Context) error { return c.serving(ctx, "ok") })
	if services := output(t, tool(t, "grpcurl"), "-plaintext", c.address, "list"); !strings.Contains(services, "grpc.health.v1.Health\n") {
		t.Errorf("by reflection, which is a stream: %s", services)
	}
	must(t, c.exactly(t.Context(), "ok", 200, 200))

	must(t, c.failing(t.Context(), "once", "Unavailable"))
	o.policy("MeshRetry", "{to: [{targetRef: {kind: Mesh}, default: {grpc: {numRetries: 5, retryOn: [Unavailable], backOff: {baseInterval: 1ms, maxInterval: 5ms}}}}]}")
	o.soon("what failed once to be sent again", func(ctx context.Context) error { return c.serving(ctx, "once") })
	// Of calls that go on beside each other some would fail again by turns, so five attempts are for five at once.
	o.soon("all of 100 flaky calls to be answered", func(ctx context.Context) error { return c.exactly(ctx, "flaky", 100, 100) })
	o.remove("MeshRetry")

	must(t, c.serving(t.Context(), "late"))
	o.policy("MeshTimeout", "{to: [{targetRef: {kind: Mesh}, default: {http: {requestTimeout: 200ms}}}]}")
	o.soon("a late call to end", func(ctx context.Context) error {
		start := time.Now()
		if said, err := c.grpcurl(ctx, "late"); err == nil || !strings.Contains(said, "upstream request timeout") || time.Since(start) > 2*time.Second {
			return fmt.Errorf("after %s: %w: %s", time.Since(start), err, said)
		}
		return nil
	})
	o.remove("MeshTimeout")

	o.policy("MeshFaultInjection", "{rules: [{default: {http: [{abort: {httpStatus: 503, percentage: 100}}]}}]}")
	o.soon("calls to fail", func(ctx context.Context) error { return c.failing(ctx, "ok", "Unavailable") })
	must(t, c.exactly(t.Context(), "ok", 50, 0))
	o.remove("MeshFaultInjection")
	o.soon("calls not to fail", func(ctx context.Context) error { return c.serving(ctx, "ok") })

	o.policy("MeshRateLimit", "{rules: [{default: {local: {http: {requestRate: {num: 20, interval: 1h}}}}}]}")
	o.soon("calls over the limit to fail", func(ctx context.Context) error { return c.failing(ctx, "ok", "Unavailable") })
	// Another interval fills the bucket anew.
	o.policy("MeshRateLimit", "{rules: [{default: {local: {http: {requestRate: {num: 20, interval: 2h}}}}}]}")
	o.soon("20 of 60 calls to be answered", func(ctx context.Context) error {
		got, err := c.ghz(ctx, "ok", 60)
		if err == nil && got["OK"] == 0 { // the bucket is empty: fill it anew
			o.policy("MeshRateLimit", fmt.Sprintf("{rules: [{default: {local: {http: {requestRate: {num: 20, interval: %ds}}}}}]}", 3600+c.ids.Add(1)))
		}
		if err == nil && (got["OK"] != 20 || got["Unavailable"] != 40) {
			err = fmt.Errorf("%v", got)
		}
		return err
	})
}
