package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// The cluster of BenchmarkKubernetesPods: pods of one Service, without a kubelet.
const manyPods, podChanges = 2000, 50

// BenchmarkKubernetesPods has a zone with 2,000 pods. It measures how long the zone takes to make Dataplanes of them, how long
// it needs after a restart until it is ready and knows that one has gone meanwhile, and how long a change of one takes, from
// the write in the API server until a proxy has it.
func BenchmarkKubernetesPods(b *testing.B) {
	w := newWorld(b)
	z := w.zone(injection[:len(injection)-1]...)
	w.apply(shop)
	p := w.pods()
	p.each("a", manyPods, p.create)
	p.each("last", 1, p.create)
	p.each("last", 1, p.runs(8))
	began := time.Now()
	p.each("a", manyPods, p.runs(9))
	written := time.Since(began)
	z.dataplanes(manyPods + 1)
	b.Logf("the pods were written in %s", written)
	goal(b, "2,000 pods become ready: from the last until the zone has all", "s", (time.Since(began) - written).Seconds(), 1)

	z.Kill()
	p.gone("last")
	began = time.Now()
	z.start()
	z.dataplanes(manyPods)
	goal(b, "2,000 pods: from the zone's start until it is ready and knows what has gone meanwhile", "s", time.Since(began).Seconds(), 8)

	proxy := z.watches(b.Context(), "shop", "a-0")
	proxy.counts(manyPods)
	var took []time.Duration
	for i := range podChanges {
		for _, ready := range []string{"False", "True"} {
			began := time.Now()
			_, err := p.client.Patch(b.Context(), p.kind, apiserver.Name{Namespace: "shop", Name: fmt.Sprintf("a-%d", 1+i)}, "status", fmt.Appendf(nil,
				`{"status": {"conditions": [{"type": "Ready", "status": %q}]}}`, ready))
			must(b, err)
			proxy.counts(map[string]int{"False": manyPods - 1, "True": manyPods}[ready])
			took = append(took, time.Since(began))
		}
	}
	b.Log("changes took", took)
	slices.Sort(took)
	goal(b, "one of 2,000 pods changes: from the write in the API server until a proxy has it, p50", "ms", milliseconds(took[len(took)/2]), 150)
	goal(b, "one of 2,000 pods: the same, p99", "ms", milliseconds(took[len(took)*99/100]), 500)
	usage, err := cluster.UsageOf(z.PID())
	must(b, err)
	goal(b, "2,000 pods: the zone's memory then", "MiB", float64(usage.Resident)/(1<<20), 300)
}

// Types that a proxy subscribes to.
const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
)

// watcher is a proxy that follows the endpoints of the Service web.
type watcher struct {
	z      *zone
	stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	node   *corev3.Node
	ready  int
}

// watches connects as the proxy of a pod.
func (z *zone) watches(ctx context.Context, namespace, pod string) *watcher {
	z.w.t.Helper()
	raw, err := os.ReadFile(z.ready)
	must(z.w.t, err)
	var addresses struct{ XDS string }
	must(z.w.t, json.Unmarshal(raw, &addresses))
	conn, err := grpc.NewClient(addresses.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	must(z.w.t, err)
	z.w.t.Cleanup(func() { conn.Close() })
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	must(z.w.t, err)
	where, err := structpb.NewStruct(map[string]any{xds.NamespaceKey: namespace})
	must(z.w.t, err)
	p := &watcher{z: z, stream: stream, node: &corev3.Node{Id: xds.NodeID("default", pod), Metadata: where}}
	must(z.w.t, stream.Send(&discovery.DeltaDiscoveryRequest{Node: p.node, TypeUrl: clusterType, ResourceNamesSubscribe: []string{"*"}}))
	return p
}

// receives takes one response. It subscribes to the endpoints of the first cluster of web that comes.
func (p *watcher) receives() error {
	answer, err := p.stream.Recv()
	if err != nil {
		return err
	}
	for _, r := range answer.GetResources() {
		switch answer.GetTypeUrl() {
		case clusterType:
			var c clusterv3.Cluster
			if err := r.GetResource().UnmarshalTo(&c); err != nil {
				return err
			}
			if c.GetType() != clusterv3.Cluster_EDS || !strings.Contains(c.GetName(), "_web_") {
				continue
			}
			name := cmp.Or(c.GetEdsClusterConfig().GetServiceName(), c.GetName())
			if err := p.stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: endpointType, ResourceNamesSubscribe: []string{name}}); err != nil {
				return err
			}
		case endpointType:
			var all endpoint.ClusterLoadAssignment
			if err := r.GetResource().UnmarshalTo(&all); err != nil {
				return err
			}
			p.ready = 0
			for _, of := range all.GetEndpoints() {
				for _, one := range of.GetLbEndpoints() {
					if s := one.GetHealthStatus(); s == corev3.HealthStatus_UNKNOWN || s == corev3.HealthStatus_HEALTHY {
						p.ready++
					}
				}
			}
		}
	}
	return p.stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: answer.GetTypeUrl(), ResponseNonce: answer.GetNonce()})
}

// counts waits until the proxy knows so many endpoints that are ready.
func (p *watcher) counts(want int) {
	p.z.w.t.Helper()
	for deadline := time.Now().Add(patience); p.ready != want; {
		if err := p.receives(); err != nil || time.Now().After(deadline) {
			p.z.w.t.Fatalf("the proxy knows %d ready endpoints, want %d: %v", p.ready, want, err)
		}
	}
}
