package kds

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Servers of the previous version know the messages of ReportService as JSON in a google.protobuf.BytesValue. These are
// theirs, byte for byte.
const (
	previousReport = `{"applied":{"MeshTrafficPermission":7},"own":9,"behind":[{"mesh":"default","namespace":"shop",` +
		`"name":"dp-1","reason":"no such cluster"}],"more":2,"streams":4,"held":{"Mesh":1},` +
		`"newStore":{"known":"a","announced":"b","since":"2030-01-02T03:04:05Z"},"replaced":{"count":3,"since":"2030-01-02T03:04:05Z"}}`
	previousAnswer = `{"stored":true,"pending":["zone-3"],"refused":[{"zone":"zone-4","reason":"no"}],` +
		`"offline":[{"zone":"zone-2","since":"2030-01-02T03:04:05Z","notSeen":true}],"behind":["zone-5"]}`
)

var aTime = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// reported is what previousReport says.
func reported() *tracker.Report {
	return &tracker.Report{
		Applied: map[resources.Type]uint64{resources.TypeMeshTrafficPermission: 7}, Own: 9, More: 2, Streams: 4,
		Behind:   []tracker.ProxyBehind{{Mesh: "default", Namespace: "shop", Name: "dp-1", Reason: "no such cluster"}},
		Held:     map[resources.Type]int{resources.TypeMesh: 1},
		NewStore: &tracker.NewStore{Known: "a", Announced: "b", Since: aTime},
		Replaced: &tracker.Replaced{Count: 3, Since: aTime},
	}
}

// TestReportsInBothForms checks that a report reads the same in fields and as the previous version's JSON.
func TestReportsInBothForms(t *testing.T) {
	t.Parallel()
	for _, inFields := range []bool{true, false} {
		m, err := reportMessage(reported(), inFields)
		if err != nil {
			t.Fatal(err)
		}
		if !inFields && string(m.GetJson()) != previousReport {
			t.Errorf("as JSON: %s", m.GetJson())
		}
		if got, err := parseReport(m); err != nil || !reflect.DeepEqual(got, reported()) {
			t.Errorf("in fields %t: %+v, %v", inFields, got, err)
		}
	}
	for name, broken := range map[string]*kdspb.ReportRequest{
		"a time after all years": {NewStore: &kdspb.NewStore{Since: &timestamppb.Timestamp{Seconds: 1 << 60}}},
		"a time of no second":    {Replaced: &kdspb.Replaced{Since: &timestamppb.Timestamp{Nanos: -1}}},
		"no JSON":                {Json: []byte("[]")},
	} {
		if r, err := parseReport(broken); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	m, err := reportMessage(&tracker.Report{Behind: []tracker.ProxyBehind{{Name: "dp-1", Reason: "half a \xe2\x82"}}}, true)
	if err != nil || m.GetBehind()[0].GetReason() != "half a \uFFFD" {
		t.Errorf("a reason that is not UTF-8: %v, %v", m, err)
	}
}

// TestZoneOfThePreviousVersionReports sends what such a zone sends, and reads the answers as it does.
func TestZoneOfThePreviousVersionReports(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	own := store.NewMemory()
	key := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "own"}
	mine := written(t, zoneHome("zone-1"), key, `{"ports":[{"port":80}]}`)
	put(t, own, mine)
	z := startZoneWith(t, "zone-1", g.address, own, exchange.OwnFeatures()&^exchange.FeatureReportFields)
	eventually(t, "the resource to be stored", func() bool { return find(g.store, key.Type, "own") != nil })
	z.stop()
	p := dialPeer(t, "zone-1", g.address, exchange.OwnFeatures())
	call := func(method, body string, answer any) error {
		return p.conn.Invoke(p.ctx, "/causeway.v1.ReportService/"+method, wrapperspb.Bytes([]byte(body)), answer)
	}
	if err := call("Report", previousReport, new(emptypb.Empty)); err != nil {
		t.Fatal(err)
	}
	got := *g.LastReport("zone-1")
	got.Received = time.Time{}
	if !reflect.DeepEqual(&got, reported()) {
		t.Errorf("the global has %+v", got)
	}
	raw, err := json.Marshal(map[string]string{"type": "MeshService", "mesh": "default", "name": "own",
		"content": contentOf(mine)})
	if err != nil {
		t.Fatal(err)
	}
	answer, reached := new(wrapperspb.BytesValue), tracker.Reached{}
	if err := call("Reached", string(raw), answer); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answer.GetValue(), &reached); err != nil || !reached.Stored {
		t.Errorf("the answer is %s, %v", answer.GetValue(), err)
	}
	for _, broken := range []string{"[]", "{", `{"type":1}`} {
		if err := call("Reached", broken, answer); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", broken, err)
		}
	}
}

// previousReports answers as a global of the previous version: it decodes google.protobuf.BytesValue.
type previousReports struct {
	mu       sync.Mutex
	reports  []tracker.Report // guarded by mu
	question string           // guarded by mu
}

func (g *previousReports) register(r grpc.ServiceRegistrar) {
	unary := func(method string, answer func(in []byte) (any, error)) grpc.MethodDesc {
		return grpc.MethodDesc{MethodName: method, Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // the order of arguments is gRPC's
			in := new(wrapperspb.BytesValue)
			if err := decode(in); err != nil {
				return nil, err
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			return answer(in.GetValue())
		}}
	}
	r.RegisterService(&grpc.ServiceDesc{ServiceName: "causeway.v1.ReportService", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			unary("Report", func(in []byte) (any, error) {
				r := tracker.Report{}
				err := json.Unmarshal(in, &r)
				g.reports = append(g.reports, r)
				return &emptypb.Empty{}, err
			}),
			unary("Reached", func(in []byte) (any, error) {
				g.question = string(in)
				return wrapperspb.Bytes([]byte(previousAnswer)), nil
			}),
		}}, struct{}{})
}

// TestGlobalOfThePreviousVersion checks that a zone reports to it, and reads its answers.
func TestGlobalOfThePreviousVersion(t *testing.T) {
	t.Parallel()
	previous := &previousReports{}
	evil := &evilGlobal{t: t, store: store.NewMemory(), interval: time.Minute,
		features: exchange.OwnFeatures() &^ exchange.FeatureReportFields}
	l, target := listenSomewhere(t)
	stop := serveOn(t, l, func(r grpc.ServiceRegistrar) {
		kdspb.RegisterKDSSyncServiceServer(r, evil)
		kdspb.RegisterGlobalKDSServiceServer(r, evil)
		previous.register(r)
	})
	behind := []tracker.ProxyBehind{{Mesh: "default", Name: "dp-1", Reason: "no such cluster"}}
	z := startZone(t, "zone-1", target, store.NewMemory(), func(c *ZoneConfig) {
		c.Proxies = func(func(uint64) bool) ([]tracker.ProxyBehind, uint32) { return behind, 4 }
	})
	eventually(t, "a report", func() bool {
		previous.mu.Lock()
		defer previous.mu.Unlock()
		return len(previous.reports) > 0 && slices.Equal(previous.reports[0].Behind, behind) &&
			previous.reports[0].Streams == 4
	})
	key := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "own"}
	mine := written(t, zoneHome("zone-1"), key, `{}`)
	var got *tracker.Reached
	eventually(t, "an answer", func() bool {
		var err error
		got, err = z.Reached(t.Context(), mine)
		return !errors.Is(err, ErrNotConnected)
	})
	want := &tracker.Reached{Stored: true, Pending: []string{"zone-3"}, Behind: []string{"zone-5"},
		Refused: []tracker.RolloutRefused{{Zone: "zone-4", Reason: "no"}},
		Offline: []tracker.RolloutOffline{{Zone: "zone-2", Since: aTime, NotSeen: true}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the zone has %+v, want %+v", got, want)
	}
	var asked map[string]string
	previous.mu.Lock()
	err := json.Unmarshal([]byte(previous.question), &asked)
	previous.mu.Unlock()
	if err != nil || asked["type"] != "MeshService" || asked["name"] != "own" || asked["content"] != contentOf(mine) {
		t.Errorf("the zone asked %s, %v", previous.question, err)
	}
	z.stop()
	stop()
}
