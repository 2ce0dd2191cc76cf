package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestTrafficTarget applies the example of the Service Mesh Interface unchanged (seed 003, "Example Implementation"),
// and checks each line of its table with a real Envoy: first in a zone, then on the global.
func TestTrafficTarget(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1", "zone-2")
	zone := m.zones["zone-1"]
	api, err := m.StartWorkload(t.Context(), cluster.WorkloadConfig{
		Zone: zone, Mesh: "default", Namespace: "default", Name: "api-service", ServiceAccount: "api-service",
		Inbounds: []cluster.InboundConfig{{Name: "http-port", Protocol: cluster.ProtocolHTTP},
			{Name: "other-port", Protocol: cluster.ProtocolHTTP}},
	})
	m.must(err)
	t.Cleanup(api.Close)
	s := &trafficSite{mesh: m, api: api, clients: map[string]*cluster.Client{}}
	for _, name := range []string{"website-service", "payments-service", "prometheus", "stranger"} {
		s.clients[name], _ = m.client(zone, name)
	}
	s.clients["website of zone-2"], _ = m.client(m.zones["zone-2"], "website-service")
	example, err := os.ReadFile("testdata/traffic-target.yaml")
	m.must(err)
	documents := strings.ReplaceAll(string(example), "port: 8080", "port: "+strconv.Itoa(api.Inbound("http-port").Port))

	m.apply(zone, documents)
	s.table("kri_tt_default_zone-1_default_")
	s.becomes("website of zone-2", "http-port", "/api", undecided)

	m.apply(m.global, "{type: MeshTrafficPermission, mesh: default, name: by-operator, spec: {default: {deny: [{spiffeId: {type: Exact, value: 'spiffe://default.zone-1.mesh.local/ns/default/sa/payments-service'}}]}}}")
	s.becomes("payments-service", "http-port", "/api", "denied by "+operatorKRI)
	s.becomes("website-service", "http-port", "/api", "kri_tt_default_zone-1_default_api-service-api_")
	m.must(m.global.API.Delete(t.Context(), "/meshes/default/meshtrafficpermissions/by-operator"))

	m.remove(zone, documents)
	s.becomes("website-service", "http-port", "/api", undecided)
	m.apply(m.global, documents)
	s.table("kri_tt_default__default_")
	s.becomes("website of zone-2", "http-port", "/api", "kri_tt_default__default_api-service-api_")
}

// trafficSite is the service of the example and its callers.
type trafficSite struct {
	*mesh
	api     *cluster.Workload
	clients map[string]*cluster.Client
}

// table checks the lines of the document's table, and what is not in it. The KRIs of the TrafficTargets start with
// prefix.
func (s *trafficSite) table(prefix string) {
	s.t.Helper()
	for _, line := range []struct{ source, path, want string }{
		{"website-service", "/api", prefix + "api-service-api_"},
		{"payments-service", "/api", prefix + "api-service-api_"},
		{"prometheus", "/metrics", prefix + "api-service-metrics_"},
		{"website-service", "/metrics", undecided},
		{"payments-service", "/metrics", undecided},
		{"prometheus", "/api", undecided},
		{"website-service", "/api/more", undecided},
		{"stranger", "/api", undecided},
	} {
		s.becomes(line.source, "http-port", line.path, line.want)
	}
	s.becomes("website-service", "other-port", "/api", undecided)
	for _, call := range []struct {
		source, method, path string
		status               int
	}{{"website-service", "DELETE", "/api", 200}, {"prometheus", "POST", "/metrics", 403}} {
		status, _, err := s.clients[call.source].Do(s.t.Context(), call.method, s.api.Inbound("http-port").Port, call.path)
		if s.must(err); status != call.status {
			s.t.Errorf("%s %s by %s: want %d, got %d", call.method, call.path, call.source, call.status, status)
		}
	}
}

// becomes waits until the Envoy decides a GET as expected: want is the KRI of the policy that allows or denies it.
func (s *trafficSite) becomes(source, inbound, path, want string) {
	s.t.Helper()
	if !strings.HasPrefix(want, "kri_") && !strings.HasPrefix(want, "denied") {
		want = "denied by " + want
	} else if strings.HasPrefix(want, "kri_") {
		want = "allowed by " + want
	}
	s.eventually("the verdict on "+source, func(ctx context.Context) error {
		v, err := s.api.Judge(ctx, s.clients[source], inbound, path)
		if err == nil && v.String() != want {
			err = fmt.Errorf("%s %s: %s, want %s", source, path, v, want)
		}
		return err
	})
}
