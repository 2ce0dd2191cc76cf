package xds_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

const (
	rds        = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	grpcRoutes = "self_inbound_grpc_main"
)

// grpcServerOf is the node of a gRPC server without a proxy.
func grpcServerOf(name string) *corev3.Node {
	n := nodeOf(name, "")
	n.UserAgentName = "gRPC Go"
	return n
}

func grpcListener(address string) string { return "self_inbound_grpc/" + address }

// TestProxyless: a gRPC server asks for its listener by address. The listener denies by itself; permissions come, and
// change, with the routes. The Dataplane could not have an Envoy, which goes on being told so.
func TestProxyless(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", `{"name": "main", "port": 8080, "protocol": "grpc"}, {"name": "db", "port": 8081, "servicePort": 9081, "protocol": "tcp"}`)
	c := z.sotw()
	c.request(grpcServerOf("backend"), lds, "", grpcListener("127.0.0.1:8080"))
	r := c.next(lds, "", grpcListener("127.0.0.1:8080"))
	if len(r.Resources) != 1 {
		t.Fatalf("%d listeners", len(r.Resources))
	}
	listener := &listenerv3.Listener{}
	must(t, r.Resources[0].UnmarshalTo(listener))
	checkServerListener(t, listener)

	c.request(nil, rds, "", grpcRoutes)
	if allow := allowsOf(t, c.next(rds, "", grpcRoutes).Resources[0].Value); len(allow.GetRules().GetPolicies()) != 0 ||
		allow.GetRules() == nil {
		t.Errorf("without a permission: %v", allow)
	}
	z.permission("ours", "backend", "spiffe://td/first")
	if allow := allowsOf(t, c.next(rds, "", grpcRoutes).Resources[0].Value); !strings.Contains(allow.String(),
		"spiffe://td/first") {
		t.Errorf("the change is not in the routes: %v", allow)
	}
	z.permission("other", "frontend", "spiffe://td/other")
	c.nothing()

	envoy := z.sotw()
	envoy.request(envoyOf("backend"), cds, "")
	z.insight("backend", func(i *meshpb.DataplaneInsight) bool {
		return strings.Contains(problem(i, "config"), "proxy and application both at 127.0.0.1:8080") &&
			strings.Contains(problem(i, "proxyless"), `inbound "db"`) && problem(i, "proxyless-config") == ""
	})
	z.put(resources.TypeMeshTrafficPermission, "unseen", `{"targetRef": {"kind": "Mesh"}, "rules": [{"default": {"deny": [
		{"sni": {"type": "Exact", "value": "x"}}]}}]}`, nil)
	if !strings.Contains(string(c.next(rds, "", grpcRoutes).Resources[0].Value), "kri_mtp_default_zone-1__unseen_") {
		t.Error("the deny is not in the routes")
	}
	z.insight("backend", func(i *meshpb.DataplaneInsight) bool {
		return strings.Contains(problem(i, "proxyless"), "kri_mtp_default_zone-1__unseen_ rules[0].default.deny[0]")
	})

	z.delete(resources.TypeDataplane, "backend")
	if r := c.next(lds, "", grpcListener("127.0.0.1:8080")); len(r.Resources) != 0 {
		t.Errorf("%d listeners of a deleted Dataplane", len(r.Resources))
	}
}

func problem(i *meshpb.DataplaneInsight, source string) string {
	return i.GetMetadata().GetFields()["problems"].GetStructValue().GetFields()[source].GetStringValue()
}

// checkServerListener: gRPC would refuse listener filters and parameters of TLS, and until the routes say otherwise all
// is denied.
func checkServerListener(t *testing.T, l *listenerv3.Listener) {
	t.Helper()
	if len(l.GetListenerFilters()) > 0 {
		t.Error("it has listener filters")
	}
	manager := &hcmv3.HttpConnectionManager{}
	must(t, l.GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(manager))
	for _, f := range manager.GetHttpFilters()[:2] {
		filter := &httprbac.RBAC{}
		must(t, f.GetTypedConfig().UnmarshalTo(filter))
		if filter.GetRules() == nil || filter.GetRules().GetAction() != 0 || len(filter.GetRules().GetPolicies()) > 0 {
			t.Errorf("%s does not deny everything: %v", f.GetName(), filter)
		}
	}
	if text := l.GetFilterChains()[0].GetTransportSocket().GetTypedConfig().String(); strings.Contains(text,
		"tls_params") || !strings.Contains(text, "causeway") {
		t.Error(text)
	}
}

// allowsOf is the filter that allows, of a route configuration.
func allowsOf(t *testing.T, value []byte) *httprbac.RBAC {
	t.Helper()
	routes := &routev3.RouteConfiguration{}
	must(t, proto.Unmarshal(value, routes))
	of := &httprbac.RBACPerRoute{}
	must(t, routes.GetVirtualHosts()[0].GetTypedPerFilterConfig()["self_inbound_dp_main_rbac_allow"].UnmarshalTo(of))
	return of.GetRbac()
}

// TestProxylessAddresses: a server that listens on all addresses has its listener, unless two inbounds could be meant.
func TestProxylessAddresses(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", `{"name": "a", "port": 8080, "protocol": "grpc"}, {"name": "b", "port": 8081, "protocol": "http2"},
		{"name": "b-too", "address": "127.0.0.2", "port": 8081, "protocol": "grpc"}`)
	names := []string{"0.0.0.0:8080", "127.0.0.1:8080", "127.0.0.1:8081", "127.0.0.2:8081", "[::]:8080"}
	asked := []string{"[::]:8081", "0.0.0.0:8081", "127.0.0.2:8080"}
	for _, address := range slices.Concat(names, asked) {
		asked = append(asked, grpcListener(address))
	}
	c := z.sotw()
	c.request(grpcServerOf("backend"), lds, "", asked...)
	var got []string
	for _, r := range c.next(lds, "", asked...).Resources {
		l := &listenerv3.Listener{}
		must(t, r.UnmarshalTo(l))
		if a := l.GetAddress().GetSocketAddress(); !strings.Contains(l.GetName(), a.GetAddress()) {
			t.Errorf("%s listens on %s", l.GetName(), a)
		}
		got = append(got, strings.TrimPrefix(l.GetName(), grpcListener("")))
	}
	if !slices.Equal(got, names) {
		t.Errorf("got %q, want %q", got, names)
	}
}

func TestProxylessIsNoIngress(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	c := z.sotw()
	n := grpcServerOf("x")
	n.Id = ".ingress"
	c.request(n, lds, "", grpcListener("127.0.0.1:1"))
	select {
	case err := <-c.err:
		if status.Code(err) != codes.InvalidArgument {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the stream goes on")
	}
}
