package api

import (
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
)

// tagService is the tag with which the Dataplanes of a gateway name it.
const tagService = "kuma.io/service"

// gatewayService is the service that the Dataplanes of one gateway form.
type gatewayService struct {
	mesh, name string
	builtin    bool
}

// countProxies counts the Dataplanes by purpose: gateways, egresses and all others.
func (s *Server) countProxies(out *GlobalInsight, v view) {
	services, egresses := map[gatewayService]*ProxyTotal{}, ProxyTotal{}
	insights := v.insightsOf(store.Query{Type: resources.TypeDataplane})
	for r := range v.list(store.Query{Type: resources.TypeDataplane}) {
		online := proxyOnline(insights.of(r))
		spec, err := resources.SpecAs[meshpb.Dataplane](r)
		if err != nil {
			spec = &meshpb.Dataplane{}
		}
		into := &out.Dataplanes.Standard
		if gateway := spec.GetNetworking().GetGateway(); gateway != nil {
			into = &out.Dataplanes.GatewayDelegated
			of := gatewayService{r.Mesh, gateway.GetTags()[tagService],
				gateway.GetType() == meshpb.Dataplane_Networking_Gateway_BUILTIN}
			if of.builtin {
				into = &out.Dataplanes.GatewayBuiltin
			}
			if services[of] == nil {
				services[of] = &ProxyTotal{}
			}
			s.countProxy(services[of], r, spec, online)
		}
		s.countProxy(into, r, spec, online)
		for _, l := range spec.GetNetworking().GetListeners() {
			if l.GetType() == meshpb.Dataplane_Networking_Listener_ZoneEgress {
				s.countProxy(&egresses, r, spec, online)
				break
			}
		}
	}
	for of, proxies := range services {
		into := &out.Services.GatewayDelegated
		if of.builtin {
			into = &out.Services.GatewayBuiltin
		}
		into.add(proxies)
	}
	out.Zones.ZoneEgresses.Total = egresses.Total
	if online := egresses.Online + egresses.PartiallyDegraded; egresses.Unknown == 0 {
		out.Zones.ZoneEgresses.Online = &online
	}
}

// countProxy adds a Dataplane to the counter of its state.
func (s *Server) countProxy(into *ProxyTotal, r *resources.Resource, spec *meshpb.Dataplane, online bool) {
	into.Total++
	switch {
	case s.unknown(r) != nil:
		into.Unknown++
	case !online:
		into.Offline++
	case !inboundsReady(spec):
		into.PartiallyDegraded++
	default:
		into.Online++
	}
}

// inboundsReady reports whether all inbounds of a Dataplane accept requests, according to the Dataplane.
func inboundsReady(spec *meshpb.Dataplane) bool {
	for _, in := range spec.GetNetworking().GetInbound() {
		if in.GetState() == meshpb.Dataplane_Networking_Inbound_NotReady || in.GetHealth() != nil && !in.GetHealth().GetReady() {
			return false
		}
	}
	return true
}

// add counts a service by the states of its proxies.
func (t *ProxyTotal) add(proxies *ProxyTotal) {
	t.Total++
	switch proxies.Total {
	case proxies.Online:
		t.Online++
	case proxies.Offline:
		t.Offline++
	default:
		if proxies.Unknown > 0 {
			t.Unknown++
		} else {
			t.PartiallyDegraded++
		}
	}
}
