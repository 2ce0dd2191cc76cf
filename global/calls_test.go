package global_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/global"
	"github.com/causeway-mesh/causeway/kds/kdspb"
)

// TestFewCallsOfAZone checks that a zone holds few calls whose requests do not end, over all its connections, since gRPC reads each
// before anybody judges it. Another zone's calls are served meanwhile, and so are its own once it has ended some.
func TestFewCallsOfAZone(t *testing.T) {
	t.Parallel()
	const most = 8
	g := startGated(t, func(*global.Config) {})
	one, two := g.join("zone-1"), g.join("zone-2")
	report := func(conn *grpc.ClientConn, zone string) codes.Code {
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "client-id", zone), time.Minute)
		defer cancel()
		_, err := kdspb.NewReportServiceClient(conn).Report(ctx, &kdspb.ReportRequest{})
		return status.Code(err)
	}
	first, second, other := g.dial(one.pair), g.dial(one.pair), g.dial(two.pair)
	for _, conn := range []*grpc.ClientConn{first, second, other} {
		if code := report(conn, map[bool]string{true: "zone-2", false: "zone-1"}[conn == other]); code != codes.OK {
			t.Fatalf("a report: %s", code)
		}
	}
	held, end := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "client-id", "zone-1"))
	defer end()
	begin := func(conn *grpc.ClientConn) {
		if _, err := conn.NewStream(held, &grpc.StreamDesc{ClientStreams: true}, kdspb.ReportService_Report_FullMethodName); err != nil {
			t.Fatal(err)
		}
	}
	for i := range most {
		begin([]*grpc.ClientConn{first, second}[i%2])
	}
	for name, conn := range map[string]*grpc.ClientConn{"the first connection": first, "the second connection": second, "a third connection": g.dial(one.pair)} {
		// A report may come before the server has counted a call that does not end, and take its place.
		for deadline := time.Now().Add(time.Minute); report(conn, "zone-1") != codes.ResourceExhausted; begin(first) {
			if time.Now().After(deadline) {
				t.Fatalf("%d calls of the zone do not end, and one more on %s is answered", most, name)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if code := report(other, "zone-2"); code != codes.OK {
		t.Errorf("another zone's report meanwhile: %s", code)
	}
	end()
	for deadline := time.Now().Add(time.Minute); report(second, "zone-1") != codes.OK; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the zone's calls have ended, and it is not served")
		}
	}
}
