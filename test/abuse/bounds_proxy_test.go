package abuse

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
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

	"github.com/causeway-mesh/causeway/zone"
)

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
