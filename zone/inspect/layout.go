package inspect

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Layout is the answer to `_layout`: what a proxy listens on, where it sends traffic, and its identity.
type Layout struct {
	KRI    string            `json:"kri"`
	Labels map[string]string `json:"labels"`
	// SpiffeID is absent if the Dataplane's names do not make a valid one.
	SpiffeID string `json:"spiffeId,omitempty"`
	// Identity is the KRI of the MeshIdentity that gives the SPIFFE ID; absent if none does.
	Identity  string   `json:"identity,omitempty"`
	Inbounds  []Port   `json:"inbounds"`
	Outbounds []Port   `json:"outbounds"`
	Listeners []Port   `json:"listeners"`
	Warnings  []string `json:"warnings,omitempty"`
	// LeftOut counts the services and identities that the caller may not read.
	LeftOut int `json:"leftOut,omitempty"`
}

// Port is one inbound or outbound.
type Port struct {
	KRI      string `json:"kri"`
	Port     uint32 `json:"port"`
	Protocol string `json:"protocol"`
	// ProxyResourceName is the name of its listener and its cluster in Envoy.
	ProxyResourceName string `json:"proxyResourceName"`
}

func (h *handlers) layout(w http.ResponseWriter, r *http.Request) error {
	a, err := h.proxyOf(r)
	if err != nil {
		return err
	}
	meta := metaOf(a.resource)
	answer := Layout{KRI: meta.KRI, Labels: meta.Labels, Inbounds: []Port{}, Outbounds: []Port{}, Listeners: []Port{}}
	if who, err := h.views.config.assigned(a.snap, a.resource); err == nil {
		answer.SpiffeID = who.ID.String()
		if who.By != nil && !a.left.out(who.By) {
			answer.Identity = resources.KRIOf(who.By).String()
		}
	}
	for i := range a.proxy.Inbounds {
		in := &a.proxy.Inbounds[i]
		answer.Inbounds = append(answer.Inbounds, Port{
			KRI: a.inboundKRI(in), Port: in.Port, Protocol: protocolOr(in.AppProtocol),
			ProxyResourceName: "self_inbound_dp_" + in.Section(),
		})
	}
	answer = a.addOutbounds(answer)
	answer.LeftOut = a.left.count()
	return api.WriteLongJSON(w, answer)
}

func protocolOr(app string) string {
	if app == "" {
		return string(matching.TCP)
	}
	return app
}

// addOutbounds resolves the Dataplane's outbounds as its Envoy gets them. An outbound that leads to no port becomes a
// warning.
func (a *asked) addOutbounds(answer Layout) Layout {
	spec, err := resources.SpecAs[meshpb.Dataplane](a.resource)
	if err != nil {
		return answer
	}
	tagged := sync.OnceValue(a.taggedInput)
	for i, out := range spec.GetNetworking().GetOutbound() {
		backend := out.GetBackendRef()
		if backend == nil {
			answer = a.addTagged(answer, i, out, tagged)
			continue
		}
		ref := resources.BackendRef{Port: backend.GetPort(), TargetRef: resources.TargetRef{
			Kind: backend.GetKind(), Name: backend.GetName(), Labels: backend.GetLabels(),
		}}
		target, problem := a.destinations(a.proxy.Zone).ResolvePort(a.proxy.Referrer(), &ref, "")
		if problem != "" {
			answer.Warnings = append(answer.Warnings, "networking.outbound["+strconv.Itoa(i)+"].backendRef: "+
				a.left.reader.Text(problem))
			continue
		}
		if a.left.out(target.Destination.Resource) {
			continue
		}
		kri := target.Destination.KRI.WithSection(target.Section).String()
		answer.Outbounds = append(answer.Outbounds, Port{
			KRI: kri, Port: out.GetPort(), Protocol: protocolOr(appProtocol(target)), ProxyResourceName: kri,
		})
	}
	return answer
}

// addTagged adds an outbound by tags. It has no KRI, because it may lead to more than one service.
func (a *asked) addTagged(answer Layout, i int, out *meshpb.Dataplane_Networking_Outbound,
	input func() matching.TaggedInput) Layout {
	field := "networking.outbound[" + strconv.Itoa(i) + "]: "
	if out.GetTags()[resources.TagService] == "" {
		answer.Warnings = append(answer.Warnings, field+resources.NamelessOutbound)
		return answer
	}
	in := input()
	in.Tags = out.GetTags()
	t := matching.NewTagged(&in)
	if t.Problem != "" {
		answer.Warnings = append(answer.Warnings, field+a.left.reader.Text(t.Problem))
	}
	answer.Outbounds = append(answer.Outbounds, Port{Port: out.GetPort(), Protocol: protocolOr(t.Protocol),
		ProxyResourceName: matching.TaggedName(in.Mesh, in.Namespace, in.Tags)})
	return answer
}

// taggedInput returns what the tags of the Dataplane's outbounds may mean, without the tags. It reads the whole mesh.
func (a *asked) taggedInput() matching.TaggedInput {
	mesh := a.proxy.Key.Mesh
	in := matching.TaggedInput{Mesh: mesh, Zone: a.proxy.Zone, Namespace: a.proxy.Namespace,
		SystemNamespace: a.config.SystemNamespace}
	for dp := range a.snap.List(store.Query{Type: resources.TypeDataplane, Mesh: mesh}) {
		if p, err := matching.NewProxy(dp); err == nil {
			in.Proxies = append(in.Proxies, p)
		}
	}
	for _, d := range a.destinations(a.proxy.Zone).All() {
		if d.Resource.Type == resources.TypeMeshService {
			in.Services = append(in.Services, d)
		}
	}
	in.Ingresses = slices.Collect(a.snap.List(store.Query{Type: resources.TypeZoneIngress}))
	return in
}

// appProtocol returns the protocol that the target's port declares; empty if it declares none.
func appProtocol(target matching.Target) string {
	if service, err := resources.SpecAs[resources.MeshService](target.Destination.Resource); err == nil {
		for i := range service.Ports {
			if p := &service.Ports[i]; isSection(target.Section, p.Name, p.Port) {
				return p.AppProtocol
			}
		}
	}
	if service, err := resources.SpecAs[resources.MeshMultiZoneService](target.Destination.Resource); err == nil {
		for i := range service.Ports {
			if p := &service.Ports[i]; isSection(target.Section, p.Name, p.Port) {
				return p.AppProtocol
			}
		}
	}
	if service, err := resources.SpecAs[resources.MeshExternalService](target.Destination.Resource); err == nil {
		return service.Match.Protocol
	}
	return ""
}

// isSection reports whether a section names a port: by name, or by number if the port has no name.
func isSection(section, name string, port uint32) bool {
	return section == cmp.Or(name, strconv.FormatUint(uint64(port), 10))
}
