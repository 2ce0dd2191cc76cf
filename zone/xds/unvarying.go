package xds

import (
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	httpinspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/http_inspector/v3"
	originaldstv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_dst/v3"
	inspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/resources/reach"
	"github.com/causeway-mesh/causeway/zone/hostnames"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// unvarying holds what all inbounds, and all listeners for redirected connections, share. It is built once and is immutable.
type unvarying struct {
	// denyHTTP replaces permissions that have not arrived yet.
	denyHTTP *anypb.Any
	router   *anypb.Any
	// inspector gives matchers the server name of the handshake.
	inspector *anypb.Any
	// unasked exempts a route from permissions.
	unasked *anypb.Any
	// unregistered matches requests whose method is not registered.
	unregistered []*routev3.HeaderMatcher
	// identityHeaders are removed from requests. Envoy itself removes one spelling of them.
	identityHeaders []string
	// outsiders removes the headers that no client outside the mesh may set.
	outsiders *corev3.TypedExtensionConfig
	// odd removes headers that oddHeaders matches.
	odd *corev3.TypedExtensionConfig
	// refused is the chain of redirected connections that lead nowhere, refuses selects it, and open is that of those that
	// go wherever they were going, by the cluster passes. inspectors read the first bytes of connections.
	refused, open *listenerv3.FilterChain
	refuses       *fieldMatcher
	passes        *resource
	inspectors    []*listenerv3.ListenerFilter
}

// oddHeaders matches the header names by which a client claims another method, path or identity, with a separator that
// is neither a hyphen nor an underscore: lighttpd, and httpd before 2.4, pass `x.original.url` to CGI as
// `X-Original-URL`. No legitimate client sends such names.
const oddHeaders = `x(?:[^a-z0-9_-]|[_-].*[^a-z0-9_-]).*(?:method|override|url|cert|name)`

var theUnvarying = sync.OnceValues(func() (*unvarying, error) {
	out := &unvarying{unregistered: unregisteredMethods(), identityHeaders: rbac.Spellings("x-forwarded-client-cert")}
	var err error
	if out.outsiders, err = withoutOutsideHeaders(); err != nil {
		return nil, err
	}
	if out.odd, err = removing([]string{oddHeaders}); err != nil {
		return nil, err
	}
	for _, one := range []struct {
		into **anypb.Any
		from message
	}{
		{&out.denyHTTP, rbac.DenyAllHTTP()}, {&out.router, &routerv3.Router{}},
		{&out.inspector, &inspectorv3.TlsInspector{}}, {&out.unasked, &rbacv3.RBACPerRoute{}},
	} {
		if *one.into, err = pack(one.from); err != nil {
			return nil, err
		}
	}
	return out, out.setPassing()
})

// setPassing sets what all listeners for redirected connections share.
func (u *unvarying) setPassing() (err error) {
	refused := &chainRule{chain: refusedChain, prefixes: append(reach.NeverPassed(), hostnames.Ranges()...)}
	u.refuses = refused.matcher()
	if u.refused, err = bytesChain(refusedChain, lost); err != nil {
		return err
	}
	if u.open, err = bytesChain(openChain, passCluster); err != nil {
		return err
	}
	if u.passes, err = newPassCluster(); err != nil {
		return err
	}
	// UseOriginalDst puts its filter last, which a connection that times out in the other filters never reaches.
	for _, inspector := range []struct {
		name   string
		config message
	}{
		{"envoy.filters.listener.original_dst", &originaldstv3.OriginalDst{}},
		{"envoy.filters.listener.tls_inspector", &inspectorv3.TlsInspector{}},
		{"envoy.filters.listener.http_inspector", &httpinspectorv3.HttpInspector{}},
	} {
		packed, err := pack(inspector.config)
		if err != nil {
			return err
		}
		u.inspectors = append(u.inspectors, &listenerv3.ListenerFilter{Name: inspector.name,
			ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: packed}})
	}
	return nil
}
