package abuse

import (
	"crypto/x509"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestReportsAreCountedBeforeTheyAreDecoded sends reports that fill a message and are eighty times as large in memory.
// A zone may send many at once.
func TestReportsAreCountedBeforeTheyAreDecoded(t *testing.T) {
	s := startBoundedGlobal(t)
	z := s.join(t, "evil")
	defer z.Close()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(read(t, filepath.Join(s.dataDir, "kds-tls", "ca.crt")))
	conn, err := grpc.NewClient(s.addresses["kds"],
		grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(pool, "localhost")))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "client-id", "evil")
	call := func(method, body string) error {
		return conn.Invoke(ctx, "/causeway.v1.ReportService/"+method, wrapperspb.String(body), &emptypb.Empty{})
	}
	const size = 9 << 20
	for name, row := range map[string]struct{ method, body string }{
		"proxies without a name": {"Report", `{"behind":[` + strings.Repeat("{},", size/3) + "{}]}"},
		"proxies that are null":  {"Report", `{"behind":[` + strings.Repeat("null,", size/5) + "null]}"},
		"names of what is gone":  {"Report", `{"replaced":{"names":[` + strings.Repeat(`"",`, size/3) + `""]}}`},
		"a long question":        {"Reached", `{"content":"` + strings.Repeat("x", size) + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := call(row.method, row.body)
			runtime.ReadMemStats(&after)
			if status.Code(err) != codes.InvalidArgument {
				t.Errorf("it ended with %v", err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 10*size { // this process is the zone, too
				t.Errorf("it took %d MiB", took>>20)
			}
		})
	}
	if err := call("Report", `{"behind":[{"mesh":"default","name":"shop"}]}`); err != nil {
		t.Errorf("a report as it should be: %v", err)
	}
}
