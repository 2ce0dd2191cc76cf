package main

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// What the proxies of the stage connections send to: a service of TCP, the one that takes a share of it, and two
// services outside the mesh. The streams go to the first of those; the other one changes.
const (
	tcpService, tcpShare        = "bench-tcp", "bench-tcp-share"
	outside, changingOutside    = "bench-outside", "bench-outside-changing"
	openEgress, simulatedEgress = "bench-egress-open", zoneProxies
	egressPort                  = 10_001
)

// fillEndless writes benchService, and a policy without which requests would end after 15 s.
func fillEndless(ctx context.Context, s *cluster.Server) error {
	if err := putBenchService(ctx, s); err != nil {
		return err
	}
	return s.API.Put(ctx, "/meshes/default/meshtimeouts/bench", object{"type": "MeshTimeout", "mesh": "default", "name": "bench",
		"spec": object{"to": []any{object{"targetRef": object{"kind": "Mesh"}, "default": object{"http": object{"requestTimeout": "0s"}}}}}})
}

// oneAddress returns an address that only the n-th version of a resource has, as text.
func oneAddress(n int) (text string, sign []byte) {
	const most = 100
	text = fmt.Sprintf("127.77.%d.%d", most+n/most, most+n%most)
	return text, []byte(text)
}

// oneDomain returns a domain that only the n-th version of a resource has.
func oneDomain(n int) (text string, sign []byte) {
	prefix, sign := word(n)
	return prefix + "x.example", sign
}

// connections is a zone whose proxies send to services of TCP, and to services outside the mesh by way of two egresses:
// a real one, and a simulated one.
func connections() stage {
	return stage{
		types: []policyType{
			{typ: resources.TypeMeshTCPRoute, list: "to", service: tcpService, conf: func(n int) (any, []byte) {
				weight, sign := amount(n)
				share := object{"kind": "MeshService", "name": tcpShare, "port": benchPort, "weight": weight}
				return object{"default": object{"backendRefs": []any{serviceRef("MeshService", tcpService), share}}}, sign
			}},
			// The callers know the egresses, and the egresses the service.
			{typ: resources.TypeMeshExternalService, by: "by an egress", moves: true,
				ofAll: func(n int) (string, map[string]any, []byte) {
					at, sign := oneAddress(n)
					path, doc := egress(at)
					return path, doc, sign
				},
				ofOne: func(_, n int) (string, map[string]any, []byte) {
					at, sign := oneAddress(n)
					path, doc := external(changingOutside, at, egressPort)
					return path, doc, sign
				}},
		},
		begin: beginConnections, others: 1, options: sendingOptions{endpoints: true},
		dataplane: func(i int) (path string, doc map[string]any) {
			if i == simulatedEgress {
				return egress("127.77.0.1")
			}
			path, doc = dataplane(i)
			networking, _ := doc["networking"].(map[string]any)
			networking["outbound"] = []any{
				object{"port": 10_000, "backendRef": serviceRef("MeshService", tcpService)},
				object{"port": 10_001, "backendRef": serviceRef("MeshExternalService", outside)}}
			return path, doc
		},
	}
}

// egress is the Dataplane of the simulated egress, at an address.
func egress(at string) (path string, doc map[string]any) {
	return egressOf(dataplaneName(simulatedEgress), at, egressPort)
}

func egressOf(name, at string, port int) (path string, doc map[string]any) {
	return "/meshes/default/dataplanes/" + name, map[string]any{"type": "Dataplane", "mesh": "default", "name": name,
		"labels": object{"kuma.io/workload": "egress"}, "networking": object{"address": at,
			"listeners": []any{object{"type": "ZoneEgress", "port": port, "name": "way"}}}}
}

// external is a service outside the mesh with one endpoint.
func external(name, at string, port int) (path string, doc map[string]any) {
	return "/meshes/default/meshexternalservices/" + name, map[string]any{
		"type": "MeshExternalService", "mesh": "default", "name": name, "spec": object{
			"match":     object{"port": benchPort, "protocol": "http"},
			"endpoints": []any{object{"address": at, "port": port}}}}
}

func beginConnections(ctx context.Context, c *cluster.Cluster, s *cluster.Server) (*streams, error) {
	st, err := startApplication(ctx)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return st, err
	}
	if err := s.API.Put(ctx, "/meshes/default", object{"type": "Mesh", "name": "default", "routing": object{"zoneEgress": true}}); err != nil {
		return st, err
	}
	for _, name := range []string{tcpService, tcpShare} {
		if err := putService(ctx, s, name, tcpSection, "tcp"); err != nil {
			return st, err
		}
	}
	if err := fillEndless(ctx, s); err != nil {
		return st, err
	}
	for _, put := range []func() (string, map[string]any){
		func() (string, map[string]any) { return external(outside, "127.0.0.1", st.port) },
		func() (string, map[string]any) { return external(changingOutside, "127.77.0.2", egressPort) },
		func() (string, map[string]any) { return egressOf(openEgress, "127.0.0.1", ports[0]) },
	} {
		path, doc := put()
		if err := s.API.Put(ctx, path, doc); err != nil {
			return st, err
		}
	}
	proxy, err := c.StartProxy(ctx, cluster.ProxyConfig{Zone: s, Mesh: "default", Egress: openEgress})
	if err != nil {
		return st, err
	}
	if err := proxy.WaitListeners(ctx, ports...); err != nil {
		return st, err
	}
	return st, st.startEnvoy(ctx, c, s, nil, nil, serviceRef("MeshService", tcpService), serviceRef("MeshExternalService", outside))
}

// namedServices is the number of services that have names.
const namedServices = 10

// names is a zone whose proxies take redirected connections, and answer for the names of services.
func names() stage {
	redirected := func(port int) object { return object{"transparentProxying": object{"redirectPortOutbound": port}} }
	return stage{
		types: []policyType{
			{typ: resources.TypeMeshPassthrough, list: "default", moves: true, conf: func(n int) (any, []byte) {
				domain, sign := oneDomain(n)
				return object{"passthroughMode": "Matched", "appendMatch": []any{
					object{"type": "Domain", "value": domain, "port": 443, "protocol": "tls"}}}, sign
			}},
			{typ: resources.TypeHostnameGenerator, by: "for all services", moves: true,
				ofAll: func(n int) (string, map[string]any, []byte) {
					domain, sign := oneDomain(n)
					return "/hostnamegenerators/bench", map[string]any{"type": "HostnameGenerator", "name": "bench", "spec": object{
						"selector": object{"meshService": object{}}, "template": "{{ .DisplayName }}." + domain}}, sign
				}},
		},
		options: sendingOptions{metadata: map[string]*structpb.Value{"causeway.io/dns": structpb.NewStructValue(&structpb.Struct{
			Fields: map[string]*structpb.Value{"address": structpb.NewStringValue("127.0.0.1:15053")}})}},
		dataplane: func(i int) (path string, doc map[string]any) {
			path, doc = sendingDataplane(i)
			networking, _ := doc["networking"].(map[string]any)
			for field, value := range redirected(15_001) {
				networking[field] = value
			}
			return path, doc
		},
		begin: func(ctx context.Context, c *cluster.Cluster, s *cluster.Server) (*streams, error) {
			st, err := startApplication(ctx)
			if err != nil {
				return nil, err
			}
			if err := fillEndless(ctx, s); err != nil {
				return st, err
			}
			for i := range namedServices {
				if err := putService(ctx, s, fmt.Sprintf("bench-named-%d", i), httpSection, "http"); err != nil {
					return st, err
				}
			}
			ports, err := freePorts(2)
			if err != nil {
				return st, err
			}
			return st, st.startEnvoy(ctx, c, s, redirected(ports[0]), []string{"--dns-address", fmt.Sprintf("127.0.0.1:%d", ports[1])},
				serviceRef("MeshService", benchService))
		},
	}
}

// Tags of gateways: of all, and of each one.
const (
	gatewayName = "bench-gateway"
	gatewayTag  = "kuma.io/service"
	ofGateway   = "bench/proxy"
)

// gatewayListenPort is where the listeners of gateways are.
const gatewayListenPort = 10_002

// gateways is a zone whose proxies are gateways, with a route to a service.
func gateways() stage {
	return stage{
		types: []policyType{{typ: resources.TypeMeshGateway, by: "by its proxies", moves: true,
			ofAll: func(n int) (string, map[string]any, []byte) {
				return gatewayFor(gatewayName, object{gatewayTag: gatewayName}, n)
			},
			ofOne: func(of, n int) (string, map[string]any, []byte) {
				name := dataplaneName(of)
				return gatewayFor(name, object{gatewayTag: gatewayName, ofGateway: name}, n)
			}}},
		options: sendingOptions{by: routeType}, dataplane: gatewayDataplane, begin: beginGateways,
	}
}

func gatewayDataplane(i int) (path string, doc map[string]any) {
	path, doc = dataplane(i)
	networking, _ := doc["networking"].(map[string]any)
	delete(networking, "inbound")
	networking["gateway"] = object{"type": "BUILTIN", "tags": object{gatewayTag: gatewayName, ofGateway: dataplaneName(i)}}
	return path, doc
}

// gatewayFor is the n-th version of a MeshGateway, with a host of its own beside all others.
func gatewayFor(name string, tags object, n int) (path string, doc map[string]any, sign []byte) {
	domain, sign := oneDomain(n)
	listener := func(host string) object {
		return object{"port": gatewayListenPort, "protocol": "HTTP", "hostname": host}
	}
	return "/meshes/default/meshgateways/" + name, map[string]any{"type": "MeshGateway", "mesh": "default", "name": name,
		"selectors": []any{object{"match": tags}}, "conf": object{"listeners": []any{listener(domain), listener("*")}}}, sign
}

// gatewayRoute sends all requests that enter by a MeshGateway to benchService.
func gatewayRoute(name string) (path string, doc map[string]any) {
	return "/meshes/default/meshhttproutes/" + name, map[string]any{"type": "MeshHTTPRoute", "mesh": "default", "name": name,
		"spec": object{"targetRef": object{"kind": "MeshGateway", "name": name}, "to": []any{object{"targetRef": object{"kind": "Mesh"},
			"rules": []any{object{"matches": []any{object{"path": object{"type": "PathPrefix", "value": "/"}}},
				"default": object{"backendRefs": []any{serviceRef("MeshService", benchService)}}}}}}}}
}

func beginGateways(ctx context.Context, c *cluster.Cluster, s *cluster.Server) (*streams, error) {
	st, err := startApplication(ctx)
	if err != nil {
		return nil, err
	}
	if err := fillEndless(ctx, s); err != nil {
		return st, err
	}
	path, doc, _ := gatewayFor(gatewayName, object{gatewayTag: gatewayName}, 0)
	if err := s.API.Put(ctx, path, doc); err != nil {
		return st, err
	}
	if err := fill(ctx, s, 1+narrowTargets, func(i int) (string, map[string]any) {
		if i == narrowTargets {
			return gatewayRoute(gatewayName)
		}
		return gatewayRoute(dataplaneName(i))
	}); err != nil {
		return st, err
	}
	const name = "bench-gateway-open"
	if err := s.API.Put(ctx, "/meshes/default/dataplanes/"+name, object{"type": "Dataplane", "mesh": "default", "name": name,
		"networking": object{"address": "127.0.0.1", "gateway": object{"type": "BUILTIN", "tags": object{gatewayTag: gatewayName}}}}); err != nil {
		return st, err
	}
	if err := st.startEnvoy(ctx, c, s, nil, nil); err != nil {
		return st, err
	}
	proxy, err := c.StartProxy(ctx, cluster.ProxyConfig{Zone: s, Mesh: "default", Dataplane: name, Bootstrap: []string{"--gateway"}})
	if err != nil {
		return st, err
	}
	st.ports = append(st.ports, gatewayListenPort)
	return st, proxy.WaitListeners(ctx, gatewayListenPort)
}
