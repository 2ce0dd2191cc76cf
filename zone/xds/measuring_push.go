package xds

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/causeway-mesh/causeway/resources"
)

const (
	// PushCluster is the bootstrap cluster that receives the proxy's metrics. It has no endpoints of its own and uses
	// those of PushedTo, because Envoy reads the metrics sender only from its bootstrap, but a cluster from anywhere.
	PushCluster = "causeway_push"
	// PushedTo is the cluster of the collector that a MeshMetric names.
	PushedTo = "causeway_push_to"
	// PushKey is the key of node.metadata by which a proxy announces that it has PushCluster.
	PushKey = "causeway.io/push-metrics"
)

// measured describes, from a proxy's bootstrap, how its metrics are available.
type measured struct {
	// admin means that it has AdminCluster. adminPort is the port of the admin interface, 0 if unknown.
	admin     bool
	adminPort uint32
	// pushes means that it sends its metrics to PushCluster.
	pushes bool
}

func measuredOf(node *corev3.Node) measured {
	fields := node.GetMetadata().GetFields()
	port := fields[AdminKey].GetNumberValue()
	if port < 1 || port > 65535 {
		port = 0
	}
	return measured{
		admin:     port > 0 || fields[AdminKey].GetBoolValue(), // earlier versions wrote true
		adminPort: uint32(port),
		pushes:    fields[PushKey].GetBoolValue(),
	}
}

// pushMetrics makes the proxy send its metrics to a collector.
func (t *target) pushMetrics(origin string, push *resources.MetricPush, conf *resources.MetricConf) error {
	host, port, err := resources.ParseCollectorEndpoint(push.Endpoint)
	if near := t.nearby(); err == nil {
		err = near.refuses(host, port)
	}
	switch {
	case err != nil:
		t.observed.problem(origin, "openTelemetry.endpoint: "+err.Error())
		return nil
	case !t.measured.pushes:
		t.observed.problem(origin, "openTelemetry: the proxy's bootstrap sends no metrics: recreate it with --push-metrics-every, and restart the proxy")
		return nil
	}
	if conf.Sidecar != nil && (conf.Sidecar.Regex != nil || conf.Sidecar.IncludeUnused != nil || conf.Sidecar.Profiles != nil) {
		t.observed.problem(origin, "sidecar: applies to Prometheus only: OpenTelemetry receives everything that was ever counted")
	}
	if len(conf.Applications) > 0 {
		t.observed.problem(origin, "applications: apply to Prometheus only: OpenTelemetry receives the proxy's own metrics")
	}
	collector, err := newCollector(PushedTo, host, port, true)
	if err == nil {
		t.observed.collect([]*resource{collector})
	}
	return err
}
