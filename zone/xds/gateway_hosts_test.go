package xds

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// routeFor returns a route for hosts, whose match is its name.
func routeFor(policy *matching.Policy, match string, hosts ...string) *gatewayRoute {
	rule := &matching.RouteRule{Match: json.RawMessage(match)}
	rule.Origin.Policy = policy
	r := &gatewayRoute{hosts: hosts}
	r.rule = rule
	return r
}

func portFor(hostnames ...string) *gatewayPort {
	port := &gatewayPort{name: "port"}
	for _, h := range hostnames {
		port.listeners = append(port.listeners, &gatewayListener{hostname: h,
			MeshGateway_Listener: &meshpb.MeshGateway_Listener{}})
	}
	return port
}

func somePolicy() *matching.Policy {
	return matching.NewPolicy(testResource(resources.Key{Type: resources.TypeMeshHTTPRoute, Mesh: "default", Name: "r"},
		nil, map[string]any{}), "")
}

// gatewayOfHosts returns a sender for a gateway with n routes, each with as many hostnames as one item may have.
func gatewayOfHosts(n int) *sender {
	policy := somePolicy()
	s := &sender{target: &target{gateway: &gateway{kri: "gateway"}}}
	for i := range n {
		var hosts []string
		for j := range resources.MaxRouteHostnames {
			hosts = append(hosts, fmt.Sprintf("h%d-%d.example", i, j))
		}
		s.gateway.http = append(s.gateway.http, routeFor(policy, fmt.Sprintf("%06d", i), hosts...))
	}
	return s
}

// TestHostsOfAGatewayAreBounded: any number of hostnames makes a bounded configuration, whatever routes they have.
func TestHostsOfAGatewayAreBounded(t *testing.T) {
	t.Parallel()
	s, port := gatewayOfHosts(600), portFor("*")
	hosts := s.hostsOf(port, port.listeners)
	size := 0
	for _, h := range hosts {
		size += len(h.domain) + bytesOfEntry
		for _, r := range h.routes {
			size += r.size()
		}
	}
	if len(s.out.problems) == 0 {
		t.Error("nobody is told")
	}
	if size > maxRouteBytes || len(hosts) < 1000 {
		t.Errorf("%d hosts count %d bytes, want at most %d", len(hosts), size, maxRouteBytes)
	}
}

// TestHostsCovering: the hostnames that cover a domain are those that HostCovers says, in the order of CompareHosts.
func TestHostsCovering(t *testing.T) {
	t.Parallel()
	all := []string{"*", "a", "b", "*.a", "b.a", "*.b.a", "c.b.a", "*.c.b.a", "c.a", "*.c.a", "cb.a", "*.cb.a"}
	slices.SortFunc(all, resources.CompareHosts)
	for _, domain := range all {
		var want []string
		for _, h := range all {
			if resources.HostCovers(h, domain) {
				want = append(want, h)
			}
		}
		got := slices.DeleteFunc(hostsCovering(domain), func(h string) bool { return !slices.Contains(all, h) })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", domain, got, want)
		}
	}
}
