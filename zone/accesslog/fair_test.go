package accesslog

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	datav3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// collecting is a Collector on a socket, in a zone with two Dataplanes and one policy. A proxy says by its node's id
// who it is.
type collecting struct {
	t         *testing.T
	store     store.Store
	collector *Collector
	journal   *Journal
	client    alsv3.AccessLogServiceClient
}

var home = resources.Home{Zone: "zone-1", SystemNamespace: resources.DefaultSystemNamespace}

// policyKRI is of the policy that newCollecting stores.
const policyKRI = "kri_mtp_default_zone-1__strict_"

func newCollecting(t *testing.T, capacity int) *collecting {
	t.Helper()
	c := &collecting{t: t, store: store.NewMemory(), journal: NewJournal(time.Now().Add(-time.Hour), capacity)}
	c.put(resources.TypeMeshTrafficPermission, "strict",
		`{"rules":[{"default":{"allow":[{"spiffeId":{"type":"Prefix","value":"spiffe://a/"}}]}}]}`)
	for _, name := range []string{"backend", "evil"} {
		c.put(resources.TypeDataplane, name, `{"networking":{"address":"127.0.0.1","inbound":[{"name":"web","port":8080}]}}`)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.collector = NewCollector(ctx, CollectorConfig{Store: c.store, Journal: c.journal,
		Registerer: prometheus.NewRegistry(), Identify: identifyByNode})
	server := grpc.NewServer()
	c.collector.Register(server)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		cancel()
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	c.client = alsv3.NewAccessLogServiceClient(conn)
	return c
}

func identifyByNode(_ context.Context, node *corev3.Node, _ context.CancelCauseFunc) (resources.Key, func() error,
	func(), error) {
	asked := 0
	still := func() error {
		if asked++; node.GetCluster() == becomesAnother && asked > 1 {
			return status.Error(codes.PermissionDenied, "the credential is not for this proxy")
		}
		return nil
	}
	return resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: node.GetId()}, still, func() {}, nil
}

// becomesAnother is the cluster of nodes whose Dataplane becomes another after their first message.
const becomesAnother = "becomes-another"

// TestDataplaneThatBecomesAnother: what a stream says after its credential is no longer for its Dataplane is not
// believed, and ends it.
func TestDataplaneThatBecomesAnother(t *testing.T) {
	for cluster, want := range map[string]codes.Code{"": codes.OK, becomesAnother: codes.PermissionDenied} {
		c := newCollecting(t, 0)
		stream, err := c.client.StreamAccessLogs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		id := &alsv3.StreamAccessLogsMessage_Identifier{Node: &corev3.Node{Id: "backend", Cluster: cluster}, LogName: "web"}
		for range 2 {
			_ = stream.Send(&alsv3.StreamAccessLogsMessage{Identifier: id, LogEntries: &alsv3.StreamAccessLogsMessage_HttpLogs{
				HttpLogs: &alsv3.StreamAccessLogsMessage_HTTPAccessLogEntries{LogEntry: []*datav3.HTTPAccessLogEntry{judgedBy(policyKRI, "", "/")}},
			}})
			id = nil
		}
		if _, err := stream.CloseAndRecv(); status.Code(err) != want {
			t.Errorf("%q: %v, want %s", cluster, err, want)
		}
	}
}

func (c *collecting) put(typ resources.Type, name, raw string) {
	c.t.Helper()
	spec, err := resources.NewSpec(typ, []byte(raw))
	if err != nil {
		c.t.Fatal(err)
	}
	r := home.Labelled(&resources.Resource{Spec: spec, Key: resources.Key{Type: typ, Mesh: "default", Name: name}})
	if _, err := c.store.Apply(c.t.Context(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
		c.t.Fatal(err)
	}
}

// report sends lines of one inbound of a Dataplane, and waits until they have been taken.
func (c *collecting) report(dataplane, inbound string, lines ...*datav3.HTTPAccessLogEntry) error {
	stream, err := c.client.StreamAccessLogs(c.t.Context())
	if err != nil {
		return err
	}
	id := &alsv3.StreamAccessLogsMessage_Identifier{Node: &corev3.Node{Id: dataplane}, LogName: inbound}
	for len(lines) > 0 {
		n := min(len(lines), 500)
		m := &alsv3.StreamAccessLogsMessage{Identifier: id, LogEntries: &alsv3.StreamAccessLogsMessage_HttpLogs{
			HttpLogs: &alsv3.StreamAccessLogsMessage_HTTPAccessLogEntries{LogEntry: lines[:n]},
		}}
		if err := stream.Send(m); err != nil {
			break
		}
		id, lines = nil, lines[n:]
	}
	_, err = stream.CloseAndRecv()
	return err
}

// judgedBy is a line about a request that a policy decided, and another would deny.
func judgedBy(policy, shadow, path string) *datav3.HTTPAccessLogEntry {
	fields := map[string]*structpb.Value{
		"enforced_effective_policy_id": structpb.NewStringValue(policy),
		"enforced_engine_result":       structpb.NewStringValue("allowed"),
	}
	if shadow != "" {
		fields["dryrun_shadow_engine_result"] = structpb.NewStringValue(denied)
		fields["dryrun_shadow_effective_policy_id"] = structpb.NewStringValue(shadow)
	}
	return &datav3.HTTPAccessLogEntry{
		CommonProperties: &datav3.AccessLogCommon{Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{httpNamespace: {Fields: fields}}}},
		Request:          &datav3.HTTPRequestProperties{Path: path},
	}
}

// TestJunkTakesNobodysCounter has a proxy make up thousands of policies: none of them gets a counter, and one that
// exists keeps, or then gets, its own.
func TestJunkTakesNobodysCounter(t *testing.T) {
	c := newCollecting(t, 0)
	var junk []*datav3.HTTPAccessLogEntry
	for i := range 2100 {
		junk = append(junk, judgedBy(fmt.Sprintf("kri_mtp_default_zone-1__junk-%d_", i), "", "/"),
			judgedBy(fmt.Sprintf("junk-%d", i), "", "/"))
	}
	junk = append(junk, judgedBy("kri_mtp_default_zone-1__strict_x", "", "/"),
		judgedBy("kri_dp_default_zone-1__backend_", "", "/"), judgedBy("kri_mtp_other_zone-1__strict_", "", "/"))
	if err := c.report("evil", "web", junk...); err != nil {
		t.Fatal(err)
	}
	if err := c.report("backend", "web", judgedBy(policyKRI, "", "/"), judgedBy("default", "", "/")); err != nil {
		t.Fatal(err)
	}
	for policy, want := range map[string]float64{policyKRI: 1, "default": 1, otherPolicies: float64(len(junk))} {
		if got := testutil.ToFloat64(c.collector.decisions.WithLabelValues("http", policy, "allowed")); got != want {
			t.Errorf("%s: %v, want %v", policy, got, want)
		}
	}
	if n := testutil.CollectAndCount(c.collector.decisions); n != 3 {
		t.Errorf("%d series, want 3", n)
	}
}

// TestCountersOfPoliciesThatAreGone: they are given back once there are many.
func TestCountersOfPoliciesThatAreGone(t *testing.T) {
	c := newCollecting(t, 0)
	for i := range firstSweep + 10 {
		name := fmt.Sprintf("p-%d", i)
		c.put(resources.TypeMeshTrafficPermission, name, `{}`)
		if got := c.collector.counters.name("default", "kri_mtp_default_zone-1__"+name+"_"); got == otherPolicies {
			t.Fatalf("%s has no counter", name)
		}
		key := resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default", Name: name}
		if _, err := c.store.Apply(t.Context(), store.Batch{Ops: []store.Op{{Delete: key}}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.collector.counters.known); n > 100 {
		t.Errorf("%d policies have counters, and none of them exists", n)
	}
}

// TestJunkPushesOutItsOwn fills the journal from one proxy: what another one reported stays, and the readiness of
// policies that exist does not suffer.
func TestJunkPushesOutItsOwn(t *testing.T) {
	const capacity = 1000
	c := newCollecting(t, capacity)
	if err := c.report("backend", "web", judgedBy(policyKRI, policyKRI, "/seen")); err != nil {
		t.Fatal(err)
	}
	var junk []*datav3.HTTPAccessLogEntry
	for i := range 3 * capacity {
		junk = append(junk, judgedBy("junk", "kri_mtp_default_zone-1__junk_", fmt.Sprintf("/%d", i)))
	}
	if err := c.report("evil", "web", junk...); err != nil {
		t.Fatal(err)
	}
	s := c.journal.read(func(e *Entry) bool { return e.ShadowPolicy != "" })
	if len(s.entries) != 1 || s.entries[0].PathPrefix != "/seen" || s.dropped == 0 {
		t.Errorf("%d dropped, kept %+v", s.dropped, s.entries)
	}
	if at := s.lost(policyKRI); !at.IsZero() {
		t.Errorf("a shadow denial of the policy is said to be lost at %s", at)
	}
}

// TestLogsOfInboundsThatAreNotThere: a proxy names its logs, and only its inbounds have some.
func TestLogsOfInboundsThatAreNotThere(t *testing.T) {
	c := newCollecting(t, 0)
	for inbound, want := range map[string]codes.Code{"web": codes.OK, "8080": codes.OK, "made-up": codes.NotFound,
		"": codes.NotFound} {
		if got := status.Code(c.report("backend", inbound, judgedBy("default", "", "/"))); got != want {
			t.Errorf("%q: %s, want %s", inbound, got, want)
		}
	}
}
