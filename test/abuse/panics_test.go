package abuse

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/api"
)

// evilZone is an authenticated zone that sends what it likes on the stream from the global.
type evilZone struct {
	t      *testing.T
	zone   string
	stream grpc.BidiStreamingClient[discovery.DeltaDiscoveryRequest, discovery.DeltaDiscoveryResponse]
}

func (w *world) evil(zone string) *evilZone {
	w.t.Helper()
	var offer struct{ Token string }
	body, err := json.Marshal(map[string][]string{"scopes": {"cp"}})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.global.admin.JSON(w.t.Context(), api.Request{Method: "POST", Path: "/zones/" + zone + "/_token",
		Body: body}, &offer); err != nil {
		w.t.Fatal(err)
	}
	conn, err := grpc.NewClient(w.global.addresses["kds"],
		grpc.WithTransportCredentials(credentials.NewTLS(w.global.tls())))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	w.t.Cleanup(cancel)
	ctx = metadata.AppendToOutgoingContext(ctx, "client-id", zone, "authorization", "Bearer "+offer.Token)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/kuma.mesh.v1alpha1.KDSSyncService/GlobalToZoneSync")
	if err != nil {
		w.t.Fatal(err)
	}
	return &evilZone{t: w.t, zone: zone, stream: &grpc.GenericClientStream[discovery.DeltaDiscoveryRequest,
		discovery.DeltaDiscoveryResponse]{ClientStream: stream}}
}

// ask requests a type and returns the response, or the error that ended the stream.
func (z *evilZone) ask(typ string, have ...string) (*discovery.DeltaDiscoveryResponse, error) {
	r := &discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: z.zone}, TypeUrl: typ,
		ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: map[string]string{}}
	for _, name := range have {
		r.InitialResourceVersions[name] = "1"
	}
	if err := z.stream.Send(r); err != nil {
		return nil, err
	}
	return z.stream.Recv()
}

func (z *evilZone) refuse(m *discovery.DeltaDiscoveryResponse, text string) error {
	return z.stream.Send(&discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: z.zone}, TypeUrl: m.GetTypeUrl(),
		ResponseNonce: m.GetNonce(), ErrorDetail: &rpcstatus.Status{Message: text}})
}

// refusal requests a type with names that the zone claims to have, refuses the response, and requests another type. It
// returns how long that took, and its error.
func (z *evilZone) refusal(text string, have ...string) (time.Duration, error) {
	m, err := z.ask("MeshTrafficPermission", have...)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := z.refuse(m, text); err != nil {
		return 0, err
	}
	_, err = z.ask("MeshTimeout")
	return time.Since(began), err
}

// TestAbuseOfRefusals plays a compromised zone that claims resources that no server has, and refuses their removal. The
// server has no guard against panics here, so that a panic ends the test.
func TestAbuseOfRefusals(t *testing.T) {
	w := newWorld(t)
	rows := []struct {
		name, says string
		have       []string
	}{
		{"a name without a mesh", "no", []string{"x"}},
		{"nothing for a name", "no", []string{""}},
		{"a name of dots", "no", []string{"..."}},
		{"a name with a line in it", "no", []string{"a\nb.default"}},
		{"a long name", "no", []string{strings.Repeat("a", 600) + ".default"}},
	}
	for i, row := range rows {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			if _, err := w.evil(fmt.Sprintf("evil-%d", i)).refusal(row.says,
				row.have...); status.Code(err) != codes.InvalidArgument {
				t.Errorf("the attempt ended with %v", err)
			}
			if _, err := w.evil(fmt.Sprintf("evil-%d", i)).refusal(row.says, "x.default"); err != nil {
				t.Errorf("the twin ended with %v, so the row may pass by accident", err)
			}
		})
	}
}

// TestAbuseOfLongRefusals checks that the cost of 300 lines about 10,000 names grows with the lines, not with lines
// times names.
func TestAbuseOfLongRefusals(t *testing.T) {
	w := newWorld(t)
	lines := strings.Repeat(strings.Repeat("what stands here names nothing ", 40)+"\n", 300)
	cost := func(names int) time.Duration {
		var have []string
		for i := range names {
			have = append(have, fmt.Sprintf("some-resource-that-is-gone-%d.default", i))
		}
		best := time.Hour
		for i := range 3 {
			took, err := w.evil(fmt.Sprintf("evil-%d-%d", names, i)).refusal(lines, have...)
			if err != nil {
				t.Fatal(err)
			}
			best = min(best, took)
		}
		return best
	}
	few, many := cost(10), cost(10_000)
	if many > 20*few+100*time.Millisecond {
		t.Errorf("300 lines about 10 names cost %s, about 10,000 %s", few, many)
	}
	t.Logf("300 lines about 10 names cost %s, about 10,000 %s", few, many)
}
