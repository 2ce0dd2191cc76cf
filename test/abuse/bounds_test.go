package abuse

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	datav3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/global"
	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/test/peer"
	"github.com/causeway-mesh/causeway/zone"
)

// zoneResources is the limit of resources of a type per zone on the global of these tests.
const zoneResources = 20

func startBoundedGlobal(t *testing.T) *aServer {
	t.Helper()
	s := &aServer{name: "global", dataDir: t.TempDir()}
	c := global.Config{
		DataDir: s.dataDir, ReadyFile: filepath.Join(s.dataDir, "ready.json"), Log: slog.New(slog.DiscardHandler),
		KDSTLS: true, KDSInsecureAnonymous: true,
		APIAddress: "127.0.0.1:0", KDSAddress: "127.0.0.1:0", DiagnosticsAddress: "127.0.0.1:0", Access: settingsOf(),
		KDSZoneLimits: kds.Limits{Resources: zoneResources},
	}
	s.run(t, c.ReadyFile, func(ctx context.Context) error { return global.Run(ctx, c) })
	s.url = "http://" + s.addresses["api"]
	s.admin = s.client(t, "")
	return s
}

func (s *aServer) join(t *testing.T, name string) *peer.Zone {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(read(t, filepath.Join(s.dataDir, "kds-tls", "ca.crt")))
	z, err := peer.Connect(t.Context(), peer.ZoneConfig{Name: name, KDS: s.addresses["kds"], CA: pool,
		Types: []string{"MeshService"}})
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// syncStatus is the part of GET /zones/{name}/_sync that the tests read.
type syncStatus struct {
	Types []struct {
		Type    string
		Refused []struct{ Name, Reason string }
	}
	Over []struct {
		Limit string
		Count int
	}
}

func (s *aServer) syncStatus(t *testing.T, zone string) (refused int, over map[string]int) {
	t.Helper()
	var said syncStatus
	if err := s.admin.JSON(t.Context(), api.Request{Path: "/zones/" + zone + "/_sync"}, &said); err != nil {
		return 0, nil
	}
	over = map[string]int{}
	for _, o := range said.Over {
		over[o.Limit] = o.Count
	}
	for i := range said.Types {
		refused += len(said.Types[i].Refused)
	}
	return refused, over
}

func service(zone, name string) peer.Resource {
	return peer.Resource{
		Type: "MeshService", Mesh: "default", Name: hashing.Name("default", name, zone),
		Spec: `{"state":"Available","selector":{"dataplaneTags":{"app":"x"}},"ports":[{"port":80,"appProtocol":"http"}]}`,
		Labels: map[string]string{"kuma.io/origin": "zone", "kuma.io/zone": zone, "kuma.io/mesh": "default",
			"kuma.io/display-name": name},
	}
}

func offer(t *testing.T, z *peer.Zone, all ...peer.Resource) {
	t.Helper()
	if err := z.Offer(all...); err != nil {
		t.Fatal(err)
	}
}

func (s *aServer) services(t *testing.T, zone string) (n int) {
	t.Helper()
	var list struct {
		Items []struct{ Labels map[string]string }
	}
	if err := s.admin.JSON(t.Context(), api.Request{Path: "/meshes/default/meshservices"}, &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Labels["kuma.io/zone"] == zone {
			n++
		}
	}
	return n
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestAZoneWithManyRefusedNames checks that 120,000 refused names are counted, that another zone is served meanwhile,
// and that the memory is free once the zone is gone. Each name used to cost 430 bytes for as long as the global ran.
func TestAZoneWithManyRefusedNames(t *testing.T) {
	s := startBoundedGlobal(t)
	before := heapInUse()
	const sessions, messages, names = 3, 10, 4000
	for i := range sessions { // each session frees the memory of this test's client
		z := s.join(t, "evil")
		for j := range messages {
			var all []peer.Resource
			for k := range names {
				one := service("evil", fmt.Sprintf("junk-%d-%d-%d", i, j, k))
				one.Spec = "no json"
				all = append(all, one)
			}
			offer(t, z, all...)
			eventually(t, "an answer", func() bool { return len(z.Refusals()) > j })
		}
		if refused, over := s.syncStatus(t, "evil"); refused == 0 || refused > 10_000 || over["refusals"] == 0 {
			t.Errorf("%d refusals are kept, over %v", refused, over)
		}
		if i == 0 {
			good := s.join(t, "good")
			offer(t, good, service("good", "shop"))
			eventually(t, "another zone to be served", func() bool { return s.services(t, "good") == 1 })
			if err := errors.Join(good.Err(), good.Close()); err != nil {
				t.Error(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "what the zone cost to go", func() bool { return heapInUse()-before < 8<<20 })
}

// TestAZoneWithManyResources checks that resources beyond a zone's limit are refused by name, and that nothing else is
// lost.
func TestAZoneWithManyResources(t *testing.T) {
	s := startBoundedGlobal(t)
	good, evil := s.join(t, "good"), s.join(t, "evil")
	defer good.Close()
	defer evil.Close()
	offer(t, evil, servicesOf("evil", zoneResources+7)...)
	eventually(t, "those that are too many to be refused", func() bool {
		refused, over := s.syncStatus(t, "evil")
		return refused == 7 && over["resources"] == 7
	})
	eventually(t, "the zone to be told of them",
		func() bool { return strings.Count(strings.Join(evil.Refusals(), "\n"), "over the limit") == 7 })
	if n := s.services(t, "evil"); n != zoneResources {
		t.Errorf("%d are stored", n)
	}
	offer(t, good, servicesOf("good", zoneResources)...)
	eventually(t, "all of the other zone to be stored", func() bool { return s.services(t, "good") == zoneResources })
	if refusals := good.Refusals(); len(refusals) > 0 {
		t.Errorf("the other zone was refused %q", refusals)
	}
	if text := s.metrics(t); !strings.Contains(text, `causeway_kds_over_limit{limit="resources",type="MeshService",zone="evil"} 7`) || strings.Contains(text, `zone="good"} 7`) {
		t.Error("the metrics do not say which zone is over its limit")
	}
}

func servicesOf(zone string, n int) (out []peer.Resource) {
	for i := range n {
		out = append(out, service(zone, fmt.Sprintf("s-%d", i)))
	}
	return out
}

func (s *aServer) metrics(t *testing.T) string {
	t.Helper()
	resp, err := http.Get("http://" + s.addresses["diagnostics"] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const decidingPolicy = `
{type: MeshTrafficPermission, mesh: default, name: strict, spec: {rules: [{default: {allow: [{spiffeId: {type: Prefix, value: "spiffe://a/"}}]}}]}}
`

// TestAProxyThatAsksAndTellsTooMuch sends 2,100 access log lines with made-up policies, and 100,000 names. Other
// proxies' decisions are still counted by policy, and they get their configuration.
func TestAProxyThatAsksAndTellsTooMuch(t *testing.T) {
	s := &aServer{name: "zone", dataDir: t.TempDir()}
	c := zone.Config{
		Zone: "zone-1", DataDir: s.dataDir, ReadyFile: filepath.Join(s.dataDir, "ready.json"),
		Log: slog.New(slog.DiscardHandler), AccessLog: "als",
		APIAddress: "127.0.0.1:0", XDSAddress: "127.0.0.1:0", DiagnosticsAddress: "127.0.0.1:0", Access: settingsOf(),
	}
	s.run(t, c.ReadyFile, func(ctx context.Context) error { return zone.Run(ctx, c) })
	s.url = "http://" + s.addresses["api"]
	s.admin = s.client(t, "")
	if _, err := s.admin.ApplyDocuments(t.Context(), []byte(proxiesOfTheTable+"---"+decidingPolicy),
		"application/yaml"); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(s.addresses["xds"], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var junk []string
	for i := range 2100 {
		junk = append(junk, fmt.Sprintf("kri_mtp_default_zone-1__junk-%d_", i))
	}
	tell(t, conn, "till", junk...)
	tell(t, conn, "shop", "kri_mtp_default_zone-1__strict_")
	text := s.metrics(t)
	if !strings.Contains(text, `policy="kri_mtp_default_zone-1__strict_",protocol="http",verdict="allowed"} 1`) ||
		strings.Contains(text, "junk") ||
		!strings.Contains(text, `policy="other",protocol="http",verdict="allowed"} 2100`) {
		t.Error("the decisions are not counted by who made them")
	}

	before := heapInUse()
	ended := codes.OK
	for range 25 {
		if err := ask(t, conn, "till", junk[:2000]...); err != nil && !strings.Contains(err.Error(), "deadline") {
			ended = status.Code(err)
		}
	}
	if ended != codes.ResourceExhausted {
		t.Errorf("2,000 names on each of 25 streams: %v", ended)
	}
	if grown := heapInUse() - before; grown > 64<<20 {
		t.Errorf("one proxy takes %d MiB", grown>>20)
	}
	if err := ask(t, conn, "shop"); err != nil {
		t.Errorf("another proxy: %v", err)
	}
	if text := s.metrics(t); !strings.Contains(text, `causeway_xds_over_limit_total{limit="names"} `) {
		t.Error("the metrics do not say that a limit was met")
	}
}

// tell reports one request per policy, allowed by that policy.
func tell(t *testing.T, conn *grpc.ClientConn, dataplane string, policies ...string) {
	t.Helper()
	stream, err := alsv3.NewAccessLogServiceClient(conn).StreamAccessLogs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	logs := &alsv3.StreamAccessLogsMessage_HTTPAccessLogEntries{}
	for _, policy := range policies {
		judged := &structpb.Struct{Fields: map[string]*structpb.Value{
			"enforced_effective_policy_id": structpb.NewStringValue(policy),
			"enforced_engine_result":       structpb.NewStringValue("allowed"),
		}}
		logs.LogEntry = append(logs.LogEntry, &datav3.HTTPAccessLogEntry{CommonProperties: &datav3.AccessLogCommon{
			Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy.filters.http.rbac": judged}},
		}})
	}
	m := &alsv3.StreamAccessLogsMessage{
		Identifier: &alsv3.StreamAccessLogsMessage_Identifier{Node: &corev3.Node{Id: "default." + dataplane},
			LogName: "http"},
		LogEntries: &alsv3.StreamAccessLogsMessage_HttpLogs{HttpLogs: logs},
	}
	if err := stream.Send(m); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.CloseAndRecv(); err != nil {
		t.Fatal(err)
	}
}

// ask opens a stream until the test ends, requests names and then all clusters, and returns the error that ended the
// stream.
func ask(t *testing.T, conn *grpc.ClientConn, dataplane string, names ...string) error {
	t.Helper()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	node := &corev3.Node{Id: "default." + dataplane}
	if len(names) > 0 {
		_ = stream.Send(&discovery.DeltaDiscoveryRequest{Node: node,
			TypeUrl: "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig", ResourceNamesSubscribe: names})
	}
	_ = stream.Send(&discovery.DeltaDiscoveryRequest{Node: node,
		TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster"})
	answered := make(chan error, 1)
	go func() {
		_, err := stream.Recv()
		answered <- err
	}()
	select {
	case err := <-answered:
		return err
	case <-time.After(attemptTimeout):
		t.Fatal("no answer")
		return nil
	}
}
