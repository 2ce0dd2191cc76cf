package xds

import (
	"errors"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// adminListener exposes part of a proxy's admin interface, to its zone only.
const adminListener = "causeway_admin"

var (
	// ErrNotConnected reports a proxy that has no stream to this server. It may have one to another server of the zone.
	ErrNotConnected = errors.New("no proxy of this Dataplane is connected to this server of the zone")
	// ErrNoAdmin reports a proxy that does not expose its admin interface to the zone; the wrapping error has the
	// reason.
	ErrNoAdmin = errors.New("the proxy does not expose its admin interface")
)

// Admin returns where a connected proxy exposes its admin interface to the holder of Config.AdminPin, `host:port`, and
// how many streams the Dataplane's Envoys have to this server: several Envoys may share the address. Errors:
// ErrNotConnected, ErrNoAdmin.
func (x *Proxies) Admin(dataplane resources.Key) (address string, streams int, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	err = ErrNotConnected
	for _, proxyless := range []bool{true, false} { // the Envoy's reason is the one to report
		p := x.proxies[proxyID{dataplane, proxyless}]
		if p == nil || len(p.sessions) == 0 || p.target == nil {
			continue
		}
		var at endpoint
		if at, err = p.target.adminAt(); err == nil {
			return at.String(), len(p.sessions), nil
		}
	}
	return "", 0, err
}

// adminAt returns where the proxy exposes its admin interface. Errors: ErrNoAdmin.
func (t *target) adminAt() (endpoint, error) {
	spec, err := resources.SpecAs[meshpb.Dataplane](t.dataplane)
	if err != nil {
		return endpoint{}, fmt.Errorf("%w: %w", ErrNoAdmin, err)
	}
	at := endpoint{spec.GetNetworking().GetAddress(), spec.GetNetworking().GetAdmin().GetPort()}
	var why string
	switch {
	case t.adminPin == "":
		why = "this zone asks no proxy"
	case t.proxyless:
		why = "it is a gRPC server, not an Envoy"
	case at.port == 0:
		why = "set networking.admin.port of the Dataplane to a free port of its address"
	case !t.measured.admin:
		why = "recreate its bootstrap with an --admin-address that has a port"
	case !at.dialable():
		why = "networking.address of the Dataplane is not an IP address"
	case at.port == t.measured.adminPort && at.loopback():
		why = fmt.Sprintf("networking.admin.port %d is where Envoy's own admin interface listens: choose another", at.port)
	case t.listensOn(at):
		why = fmt.Sprintf("networking.admin.port %d is the port of an inbound or a listener: choose another", at.port)
	default:
		return at, nil
	}
	return endpoint{}, fmt.Errorf("%w: %s", ErrNoAdmin, why)
}

// listensOn reports whether an inbound, a gateway or what is redirected has a listener at an address.
func (t *target) listensOn(at endpoint) bool { return t.receivesAt(at) || t.capture.isAt(at) }

// receivesAt reports whether an inbound or a gateway listens at an address.
func (t *target) receivesAt(at endpoint) bool {
	for i := range t.inbounds {
		if t.inbounds[i].listen.same(at) {
			return true
		}
	}
	for i := range t.egresses {
		if t.egresses[i].listen.same(at) {
			return true
		}
	}
	return t.gateway.listensOn(at)
}

// newAdmin returns the listener that exposes four paths of the admin interface to the zone, whose key Config.AdminPin
// identifies; nil if the proxy has none. It passes GET only: changes to the proxy need POST.
func (t *target) newAdmin() (*resource, error) {
	at, err := t.adminAt()
	if err != nil {
		return nil, nil //nolint:nilerr // Admin says why
	}
	router, err := pack(&routerv3.Router{})
	if err != nil {
		return nil, err
	}
	var routes []*routev3.Route
	for _, path := range []string{"/certs", "/clusters", "/config_dump", "/stats"} {
		routes = append(routes, &routev3.Route{
			Match: getOf(path),
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{
				ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: AdminCluster},
			}},
		})
	}
	manager, err := pack(&hcmv3.HttpConnectionManager{
		StatPrefix: adminListener,
		HttpFilters: []*hcmv3.HttpFilter{{Name: "envoy.filters.http.router",
			ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router}}},
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name: adminListener, ValidateClusters: wrapperspb.Bool(false),
			VirtualHosts: []*routev3.VirtualHost{{Name: adminListener, Domains: []string{"*"}, Routes: routes}},
		}},
	})
	if err != nil {
		return nil, err
	}
	secured := downstreamTLS(t, []string{"http/1.1"})
	secured.CommonTlsContext.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{
		ValidationContext: &tlsv3.CertificateValidationContext{VerifyCertificateSpki: []string{t.adminPin}}}
	tls, err := pack(secured)
	if err != nil {
		return nil, err
	}
	return newResource(kindListener, adminListener, &listenerv3.Listener{
		Name: adminListener, StatPrefix: adminListener, Address: at.proto(),
		TrafficDirection: corev3.TrafficDirection_INBOUND,
		FilterChains: []*listenerv3.FilterChain{{
			Name:                          adminListener,
			TransportSocketConnectTimeout: handshakeTime,
			Filters: []*listenerv3.Filter{{
				Name:       managerFilter,
				ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: manager},
			}},
			TransportSocket: &corev3.TransportSocket{Name: "envoy.transport_sockets.tls",
				ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: tls}},
		}},
	})
}

// fixedListeners are listeners that no policy but a MeshTLS affects; nil if the proxy lacks one. It is immutable.
type fixedListeners struct{ captured, admin *resource }

// fixedKey is everything that they depend on.
type fixedKey struct {
	dataplane *resources.Resource
	gateway   *gateway
	measured  measured
	capture   capture
	secrets   secretNames
	tls, pin  string
}

// noFixed is for proxies without such listeners.
var noFixed = &fixedListeners{}

// fixedListeners returns the proxy's fixed listeners.
func (t *target) fixedListeners() (*fixedListeners, error) {
	if spec, err := resources.SpecAs[meshpb.Dataplane](t.dataplane); t.capture.inbound == 0 &&
		(err != nil || spec.GetNetworking().GetAdmin().GetPort() == 0) {
		return noFixed, nil
	}
	return t.shared.fixed.get(fixedKey{t.dataplane, t.gateway, t.measured, t.capture, t.secrets, t.observed.tls.id,
		t.adminPin}, func() (*fixedListeners, error) {
		out := &fixedListeners{}
		var err error
		if out.admin, err = t.newAdmin(); err != nil {
			return nil, fmt.Errorf("admin: %w", err)
		}
		if t.capture.inbound != 0 {
			out.captured, err = t.capture.inboundListener()
		}
		return out, err
	})
}
