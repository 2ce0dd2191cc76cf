package api

import (
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Total counts things. OnlineTotal also counts the connected ones.
type Total struct {
	Total int `json:"total"`
}

// OnlineTotal counts zones by whether they are connected. Unknown counts zones whose state this replica does not know.
type OnlineTotal struct {
	Online  int `json:"online"`
	Unknown int `json:"unknown,omitempty"`
	Total   int `json:"total"`
}

// KnownTotal counts things and, if the state of all is known, how many are connected.
type KnownTotal struct {
	// Online is omitted if the server does not know it.
	Online *int `json:"online,omitempty"`
	Total  int  `json:"total"`
}

// ProxyTotal counts proxies, or services of gateways, by state, as last reported by their zones. Those of disconnected
// zones are Unknown: they may or may not run.
type ProxyTotal struct {
	Online  int `json:"online"`
	Offline int `json:"offline"`
	// PartiallyDegraded are connected proxies with an inbound that is not ready, and services with only some proxies
	// online.
	PartiallyDegraded int `json:"partiallyDegraded"`
	Unknown           int `json:"unknown,omitempty"`
	Total             int `json:"total"`
}

// GlobalInsight is the response to `GET /global-insight`, in the form of Kuma's HTTP API.
type GlobalInsight struct {
	CreatedAt  time.Time `json:"createdAt"`
	Dataplanes struct {
		Standard         ProxyTotal `json:"standard"`
		GatewayBuiltin   ProxyTotal `json:"gatewayBuiltin"`
		GatewayDelegated ProxyTotal `json:"gatewayDelegated"`
	} `json:"dataplanes"`
	Meshes    Total            `json:"meshes"`
	Policies  Total            `json:"policies"`
	Resources map[string]Total `json:"resources"`
	Services  struct {
		Internal         Total      `json:"internal"`
		External         Total      `json:"external"`
		GatewayBuiltin   ProxyTotal `json:"gatewayBuiltin"`
		GatewayDelegated ProxyTotal `json:"gatewayDelegated"`
	} `json:"services"`
	Zones struct {
		ControlPlanes OnlineTotal `json:"controlPlanes"`
		// ZoneEgresses are Dataplanes with a listener of the type ZoneEgress.
		ZoneEgresses  KnownTotal `json:"zoneEgresses"`
		ZoneIngresses KnownTotal `json:"zoneIngresses"`
	} `json:"zones"`
}

// globalInsight counts the resources. Of zones and proxies it looks at each, in linear time.
func (s *Server) globalInsight(w http.ResponseWriter, _ *http.Request) error {
	v := s.view()
	out := GlobalInsight{CreatedAt: s.config.Now().UTC(), Resources: map[string]Total{}}
	for _, d := range resources.Descriptors() {
		n := v.total(d.Type)
		if n > 0 {
			out.Resources[string(d.Type)] = Total{n}
		}
		if d.Policy != nil {
			out.Policies.Total += n
		}
	}
	for r := range v.list(store.Query{Type: resources.TypeZone}) {
		s.countZone(&out.Zones.ControlPlanes, v, r)
	}
	out.Meshes = out.Resources[string(resources.TypeMesh)]
	out.Services.External = out.Resources[string(resources.TypeMeshExternalService)]
	out.Services.Internal = out.Resources[string(resources.TypeMeshService)]
	out.Zones.ZoneIngresses = s.ingresses(v)
	s.countProxies(&out, v)
	return WriteJSON(w, http.StatusOK, out)
}

// ingresses counts the ZoneIngresses. Only their own zone knows whether they are connected.
func (s *Server) ingresses(v view) KnownTotal {
	online, known, out := 0, true, KnownTotal{}
	for r := range v.list(store.Query{Type: resources.TypeZoneIngress}) {
		out.Total++
		status := resources.ConditionUnknown
		for _, f := range s.conditions {
			for _, c := range f(r) {
				if c.Type == resources.ConditionConnected {
					status = c.Status
				}
			}
		}
		known = known && status != resources.ConditionUnknown
		if status == resources.ConditionTrue {
			online++
		}
	}
	if known {
		out.Online = &online
	}
	return out
}

// countZone adds a zone to the counter of its state.
func (s *Server) countZone(out *OnlineTotal, v view, zone *resources.Resource) {
	out.Total++
	insight := v.get(resources.Key{Type: resources.TypeZoneInsight, Name: zone.Name})
	switch {
	case s.unknown(zone) != nil:
		out.Unknown++
	case insight != nil && zoneOnline(insight):
		out.Online++
	}
}

// proxyOnline reports whether any subscription of a Dataplane's insight, nil if there is none, is open.
func proxyOnline(insight *resources.Resource) bool {
	if insight == nil {
		return false
	}
	spec, err := resources.SpecAs[meshpb.DataplaneInsight](insight)
	if err != nil {
		return false
	}
	for _, subscription := range spec.GetSubscriptions() {
		if subscription.GetDisconnectTime() == nil {
			return true
		}
	}
	return false
}
