package xds

import (
	"bytes"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/resources"
)

// TestClustersOfOnePolicyAskForTheirOwnEndpoints: proxies that one policy selects have different preferences, by their own
// tags. The cluster of each asks for the endpoints in its own order, and not for those of another.
func TestClustersOfOnePolicyAskForTheirOwnEndpoints(t *testing.T) {
	t.Parallel()
	s := storeOfChanges(t, 3)
	putText(t, s, resources.Key{Type: resources.TypeMeshLoadBalancingStrategy, Mesh: "default", Name: "near"}, nil,
		`{"to": [{"targetRef": {"kind": "MeshService", "name": "bench"}, "default": {"localityAwareness": {"localZone": {"affinityTags": [{"key": "proxy"}]}}}}]}`)
	x, asked := testProxies(s), map[string]string{}
	for _, name := range []string{"dp-0", "dp-1", "dp-2"} {
		session := connectWhole(t, x, name)
		t.Cleanup(session.end)
		out := session.proxy.state.Load().sending
		for _, r := range out.sets[kindCluster] {
			c := &clusterv3.Cluster{}
			if err := proto.Unmarshal(r.delta.GetResource().GetValue(), c); err != nil {
				t.Fatal(err)
			}
			service := c.GetEdsClusterConfig().GetServiceName()
			if out.sets[kindEndpoint].get(service) == nil {
				t.Errorf("%s: the cluster %s asks for %q, which it does not get", name, c.GetName(), service)
			}
			if other := asked[service]; other != "" {
				t.Errorf("%s asks for %q, as %s", name, service, other)
			}
			asked[service] = name
		}
	}
	if len(asked) != 3 {
		t.Errorf("asked for %v, want those of three proxies", asked)
	}
}

// TestAFileOfAHealthCheckIsLeftOutForOneProxy: a proxy that cannot open the log of a health check gets the cluster without
// it, and one with the same policies keeps it.
func TestAFileOfAHealthCheckIsLeftOutForOneProxy(t *testing.T) {
	t.Parallel()
	s := storeOfChanges(t, 2)
	putText(t, s, resources.Key{Type: resources.TypeMeshHealthCheck, Mesh: "default", Name: "logged"}, nil,
		`{"to": [{"targetRef": {"kind": "MeshService", "name": "bench"}, "default": {"interval": "10s", "timeout": "1s", "eventLogPath": "/var/log/checks", "tcp": {}}}]}`)
	x, proxies := testProxies(s), []*proxy{}
	for _, name := range []string{"dp-0", "dp-1"} {
		session := connectWhole(t, x, name)
		t.Cleanup(session.end)
		proxies = append(proxies, session.proxy)
	}
	logs := func(p *proxy) (n int) {
		for _, r := range p.state.Load().sending.sets[kindCluster] {
			n += bytes.Count(r.delta.GetResource().GetValue(), []byte("/var/log/checks"))
		}
		return n
	}
	if logs(proxies[0]) != 1 || logs(proxies[1]) != 1 {
		t.Fatalf("%d and %d clusters log, want 1 each", logs(proxies[0]), logs(proxies[1]))
	}
	x.configRefused(proxies[1], kindCluster, "unable to open file '/var/log/checks': No such file or directory")
	if logs(proxies[0]) != 1 || logs(proxies[1]) != 0 || len(proxies[1].state.Load().sending.problems) != 1 {
		t.Errorf("%d and %d clusters log, want 1 and 0; problems %q", logs(proxies[0]), logs(proxies[1]), proxies[1].state.Load().sending.problems)
	}
}

// TestAPlanSaysAProblemOfManyClustersOnce: what is wrong with a policy is wrong in the cluster of each port that it is for.
func TestAPlanSaysAProblemOfManyClustersOnce(t *testing.T) {
	t.Parallel()
	s := storeOfChanges(t, 1)
	putText(t, s, resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "ports"}, nil,
		`{"selector": {"dataplaneTags": {"kuma.io/service": "svc-0"}}, "ports": [{"port": 81}, {"port": 82}, {"port": 83}]}`)
	putText(t, s, dataplaneKey("caller"), nil, `{"networking": {"address": "127.2.0.1", "inbound": [{"port": 8080}], "outbound": [
		{"port": 10001, "backendRef": {"kind": "MeshService", "name": "ports", "port": 81}},
		{"port": 10002, "backendRef": {"kind": "MeshService", "name": "ports", "port": 82}},
		{"port": 10003, "backendRef": {"kind": "MeshService", "name": "ports", "port": 83}}]}}`)
	putText(t, s, resources.Key{Type: resources.TypeMeshHealthCheck, Mesh: "default", Name: "wrong"}, nil,
		`{"to": [{"targetRef": {"kind": "Mesh"}, "default": {"alwaysLogHealthCheckFailures": true, "tcp": {}}}]}`)
	session := connectWhole(t, testProxies(s), "caller")
	t.Cleanup(session.end)
	if p := session.proxy.state.Load().sending.plan; len(p.configs) != 3 || len(p.out.problems) != 1 {
		t.Errorf("%d clusters, problems %q, want 3 and the problem once", len(p.configs), p.out.problems)
	}
}
