package xds_test

import (
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

const (
	eds        = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	backendKRI = "kri_msvc_default_zone-1__backend_http"
)

// sends is a service backend, and a proxy caller that sends to it and has everything but secrets.
func (z *zoneServer) sends() *deltaClient {
	z.t.Helper()
	z.put(resources.TypeMeshService, "backend",
		`{"selector": {"dataplaneLabels": {"matchLabels": {"app": "backend"}}}, "ports": [{"name": "http", "port": 80, "targetPort": 8080, "appProtocol": "http"}]}`, nil)
	z.put(resources.TypeDataplane, "caller",
		`{"networking": {"address": "127.0.0.1", "outbound": [{"port": 10001, "backendRef": {"kind": "MeshService", "name": "backend", "port": 80}}]}}`, nil)
	c := z.delta()
	c.subscribe(nodeOf("caller", ""), cds, "*")
	c.next(cds)
	c.subscribe(nil, eds, backendKRI)
	c.next(eds)
	c.subscribe(nil, lds, "*")
	c.next(lds)
	c.subscribe(nil, rds, backendKRI)
	c.next(rds)
	return c
}

// TestClustersAreSentOnce: one change of a timeout is one response of each kind that it concerns. The endpoints are
// said again for the cluster that warms, and routes that waited for it follow, which wakes those that wait for clusters
// to go.
func TestClustersAreSentOnce(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	c := z.sends()
	const rounds = 3
	got := map[string]int{}
	for i := range rounds {
		z.eventually("all is acknowledged, and nothing came twice", func() bool { return !z.proxies.SyncStatuses()[0].Behind })
		z.put(resources.TypeMeshTimeout, "changing", fmt.Sprintf(
			`{"to": [{"targetRef": {"kind": "Mesh"}, "default": {"connectionTimeout": "%ds", "http": {"requestTimeout": "%ds"}}}]}`, i+1, i+20), nil)
		for seen := map[string]bool{}; len(seen) < 3; {
			r := c.any()
			seen[r.TypeUrl] = true
			got[r.TypeUrl]++
		}
	}
	z.delete(resources.TypeMeshTimeout, "changing") // what came twice comes before what comes of this
	for got[cds] < rounds+1 || got[rds] < rounds+1 {
		got[c.any().TypeUrl]++
	}
	if got[cds] != rounds+1 || got[rds] != rounds+1 {
		t.Errorf("%d changes: responses %v", rounds+1, got)
	}
}
