package zone

import (
	"fmt"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/config/metrics/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	otelv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/stat_sinks/open_telemetry/v3"
	detectorsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/tracers/opentelemetry/resource_detectors/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/zone/xds"
)

const (
	minPushInterval = time.Second
	// maxPoints limits one request to a collector, which accepts 4 MiB by default.
	maxPoints = 5000
)

// addPush makes Envoy send its metrics every PushMetricsEvery, to the collector that a MeshMetric names. Envoy reads
// the sender only from its bootstrap. The cluster stands for a discovered one, and has no endpoint until that arrives.
func (cfg *BootstrapConfig) addPush(b *bootstrapv3.Bootstrap) error {
	switch {
	case cfg.PushMetricsEvery == 0:
		return nil
	case cfg.PushMetricsEvery < minPushInterval:
		return fmt.Errorf("push metrics every %s: want at least %s", cfg.PushMetricsEvery, minPushInterval)
	case cfg.ZoneIngress != "":
		return fmt.Errorf("push metrics: a zone ingress belongs to no mesh, so no MeshMetric applies to it")
	}
	members, err := anypb.New(&aggregatev3.ClusterConfig{Clusters: []string{xds.PushedTo}})
	if err != nil {
		return err
	}
	attributes := map[string]string{"service.name": cfg.Dataplane, "causeway.mesh": cfg.Mesh}
	if cfg.Namespace != "" {
		attributes["causeway.namespace"] = cfg.Namespace
	}
	who, err := anypb.New(&detectorsv3.StaticConfigResourceDetectorConfig{Attributes: attributes})
	if err != nil {
		return err
	}
	sink, err := anypb.New(&otelv3.SinkConfig{
		ProtocolSpecifier: &otelv3.SinkConfig_GrpcService{GrpcService: &corev3.GrpcService{
			Timeout: durationpb.New(5 * time.Second),
			TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{
				ClusterName: xds.PushCluster}},
		}},
		ResourceDetectors: []*corev3.TypedExtensionConfig{{
			Name: "envoy.tracers.opentelemetry.resource_detectors.static_config", TypedConfig: who,
		}},
		MaxDataPointsPerRequest: maxPoints,
	})
	if err != nil {
		return err
	}
	b.StaticResources.Clusters = append(b.StaticResources.Clusters, &clusterv3.Cluster{
		Name: xds.PushCluster, ConnectTimeout: durationpb.New(5 * time.Second),
		LbPolicy: clusterv3.Cluster_CLUSTER_PROVIDED,
		ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
			Name: "envoy.clusters.aggregate", TypedConfig: members}},
	})
	b.StatsSinks = []*metricsv3.StatsSink{{Name: "envoy.stat_sinks.open_telemetry",
		ConfigType: &metricsv3.StatsSink_TypedConfig{TypedConfig: sink}}}
	b.StatsFlushInterval = durationpb.New(cfg.PushMetricsEvery)
	b.Node.Metadata = withField(b.Node.Metadata, xds.PushKey, structpb.NewBoolValue(true))
	return nil
}
