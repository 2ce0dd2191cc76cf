package e2e

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// span is a span that a program has sent.
type span struct {
	id, parent, trace string
	// name is the service's and the span's: "causeway-zone: xds push".
	name   string
	failed bool
}

// spans is a collector of traces.
type spans struct {
	mu  sync.Mutex
	all []span // guarded by mu
}

// ServeHTTP receives OTLP over HTTP.
func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(raw, &request) != nil {
		http.Error(w, "not spans", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range request.GetResourceSpans() {
		service := ""
		for _, a := range of.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				service = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range of.GetScopeSpans() {
			for _, one := range scope.GetSpans() {
				s.all = append(s.all, span{
					id: hex.EncodeToString(one.GetSpanId()), parent: hex.EncodeToString(one.GetParentSpanId()),
					trace: hex.EncodeToString(one.GetTraceId()),
					name:  service + ": " + one.GetName(), failed: one.GetStatus().GetCode() == v1.Status_STATUS_CODE_ERROR,
				})
			}
		}
	}
}

// way checks that a trace contains spans with these names, as a chain of parents from its root.
func (s *spans) way(names ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	byID := map[string]span{}
	for _, one := range s.all {
		byID[one.trace+one.id] = one
	}
	var seen []string
	for _, one := range s.all {
		if one.name != names[len(names)-1] || one.failed {
			continue
		}
		way := []string{one.name}
		for next := one; next.parent != ""; {
			parent, ok := byID[next.trace+next.parent]
			if !ok {
				break
			}
			way = append([]string{parent.name}, way...)
			next = parent
		}
		if fmt.Sprint(way) == fmt.Sprint(names) {
			return nil
		}
		seen = append(seen, strings.Join(way, " > "))
	}
	return fmt.Errorf("no way %s among %d spans; seen were %q", strings.Join(names, " > "), len(s.all), seen)
}

// TestOneTraceFromApplyToEnvoy checks that a policy applied on the global is one trace, over three processes, until an
// Envoy has acknowledged it, and that the trace of one applied in a zone continues to the global and to the other zone.
func TestOneTraceFromApplyToEnvoy(t *testing.T) {
	s := &spans{}
	receiver := httptest.NewServer(s)
	t.Cleanup(receiver.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	m := newMesh(t, "zone-1", "zone-2")
	zone1, zone2 := m.zones["zone-1"], m.zones["zone-2"]
	m.workload(zone1, cluster.InboundConfig{Name: "http-port", Protocol: cluster.ProtocolHTTP})
	m.apply(m.global, operator(entry("allow", "Exact", spiffeID("zone-1", "frontend"))))
	const ctl, api = "causewayctl: causewayctl apply", "POST /_batch"
	m.eventually("a trace from apply to Envoy", func(context.Context) error {
		return s.way(ctl, "causeway-global: "+api, "causeway-global: kds send", "causeway-zone: kds receive",
			"causeway-zone: xds push")
	})
	m.apply(zone2, producerTimeout)
	m.eventually("a trace from one zone to the other", func(context.Context) error {
		return s.way(ctl, "causeway-zone: "+api, "causeway-zone: kds send", "causeway-global: kds receive",
			"causeway-global: kds send", "causeway-zone: kds receive")
	})
	// The same in metrics: from a write on any server to the acknowledgement of an Envoy.
	m.eventually("the histogram of acknowledgements by proxies", func(ctx context.Context) error {
		n, err := zone1.Metric(ctx, "causeway_xds_propagation_seconds_count")
		if err == nil && n == 0 {
			err = errNotYet
		}
		return err
	})
}

// producerTimeout is a policy of a namespace for its own service.
const producerTimeout = `{type: MeshService, mesh: default, namespace: backend-ns, name: of-zone-2, spec: {ports: [{port: 80}]}}
---
{type: MeshTimeout, mesh: default, namespace: backend-ns, name: traced, spec: {targetRef: {kind: Mesh}, to: [{targetRef: {kind: MeshService, name: of-zone-2, namespace: backend-ns}, default: {idleTimeout: 1h}}]}}`
