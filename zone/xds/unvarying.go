package xds

import (
	"sync"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	inspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/zone/rbac"
)

// unvarying is what all inbounds have alike. It is made once, for all of them, and nobody changes it.
type unvarying struct {
	// denyHTTP is in the place of permissions that have not come yet.
	denyHTTP *anypb.Any
	router   *anypb.Any
	// inspector tells matchers the server name of the handshake.
	inspector *anypb.Any
	// unasked takes a route out of what permissions judge.
	unasked *anypb.Any
	// unregistered match requests whose method is none of those that are registered.
	unregistered []*routev3.HeaderMatcher
	// identityHeaders are taken out of requests. Envoy takes out one spelling of them by itself.
	identityHeaders []string
}

var theUnvarying = sync.OnceValues(func() (*unvarying, error) {
	out := &unvarying{unregistered: unregisteredMethods(), identityHeaders: rbac.Spellings("x-forwarded-client-cert")}
	for _, one := range []struct {
		into **anypb.Any
		from message
	}{
		{&out.denyHTTP, rbac.DenyAllHTTP()}, {&out.router, &routerv3.Router{}}, {&out.inspector, &inspectorv3.TlsInspector{}}, {&out.unasked, &rbacv3.RBACPerRoute{}},
	} {
		var err error
		if *one.into, err = pack(one.from); err != nil {
			return nil, err
		}
	}
	return out, nil
})
