package hostnames

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Status adds the names of services to their status. It computes the names of a mesh once per revision of the store.
type Status struct {
	Store store.Reader
	Home  resources.Home

	mu       sync.Mutex
	revision uint64            // guarded by mu
	names    map[string]*Names // guarded by mu: by mesh, at revision
}

func (s *Status) of(mesh string) *Names {
	snap := s.Store.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil || s.revision != snap.Revision() {
		s.revision, s.names = snap.Revision(), map[string]*Names{}
	}
	if s.names[mesh] == nil {
		s.names[mesh] = Read(snap, mesh, s.Home)
	}
	return s.names[mesh]
}

// The form of the status. Source: Kuma's KDS, the status of MeshService.
type (
	addressStatus struct {
		Hostname  string       `json:"hostname"`
		Origin    string       `json:"origin"`
		Generator generatorRef `json:"hostnameGeneratorRef"`
	}
	generatorRef struct {
		CoreName string `json:"coreName"`
	}
	vipStatus struct {
		IP string `json:"ip"`
	}
	generatorStatus struct {
		Ref        generatorRef          `json:"hostnameGeneratorRef"`
		Conditions []resources.Condition `json:"conditions"`
	}
)

// generated is the type of the condition of a generator on a service.
const generated = "Generated"

// Fields returns the status fields of a service: its names in this zone, its address and the generators that select it.
// It returns nil for other resources.
func (s *Status) Fields(r *resources.Resource, text func(string) string) map[string]any {
	if !slices.Contains(kinds, r.Type) {
		return nil
	}
	service := s.of(r.Mesh).Find(r.Key)
	if service == nil {
		return nil // not, or no longer, in the store
	}
	addresses, generators := []addressStatus{}, []generatorStatus{}
	for _, g := range service.Given {
		ref := generatorRef{g.Generator.DisplayName()}
		addresses = append(addresses, addressStatus{Hostname: g.Hostname, Origin: string(resources.TypeHostnameGenerator),
			Generator: ref})
		generators = append(generators, generatorStatus{ref, []resources.Condition{{Type: generated,
			Status: resources.ConditionTrue, Reason: generated, Message: g.Hostname}}})
	}
	for _, refused := range service.Refused {
		generators = append(generators, generatorStatus{generatorRef{refused.Generator.DisplayName()},
			[]resources.Condition{{Type: generated, Status: resources.ConditionFalse, Reason: refused.Reason,
				Message: text(refused.Message)}}})
	}
	out := map[string]any{"addresses": addresses, "hostnameGenerators": generators}
	vips := []vipStatus{{service.VIP.String()}}
	for _, at := range service.Addresses {
		vips = append(vips, vipStatus{at.String()})
	}
	if r.Type == resources.TypeMeshExternalService {
		out["vip"] = vips[0]
	} else {
		out["vips"] = vips
	}
	return out
}

// Conditions returns the condition of a HostnameGenerator: how many services it names in this zone, and which it does
// not. It returns nil for other resources.
func (s *Status) Conditions(r *resources.Resource) []resources.Condition {
	if r.Type != resources.TypeHostnameGenerator {
		return nil
	}
	out := resources.Condition{Type: generated, Status: resources.ConditionTrue, Reason: generated}
	if _, err := resources.SpecAs[resources.HostnameGenerator](r); err != nil {
		out.Status, out.Reason, out.Message = resources.ConditionFalse, "NotRead", "no service has a name of it: "+err.Error()
		return []resources.Condition{out}
	}
	given, refused := 0, []string{}
	for mesh := range s.Store.Snapshot().List(store.Query{Type: resources.TypeMesh}) {
		for _, service := range s.of(mesh.Name).Services {
			for _, g := range service.Given {
				if g.Generator.Key == r.Key {
					given++
				}
			}
			for _, no := range service.Refused {
				if no.Generator.Key == r.Key && no.Reason != ReasonNamespace && !isOther(service, &no) {
					refused = append(refused, service.KRI.String()+": "+no.Message)
				}
			}
		}
	}
	out.Message = fmt.Sprintf("%d services have a name of it here", given)
	if len(refused) > 0 {
		const shown = 3
		out.Status, out.Reason = resources.ConditionFalse, "NotForAll"
		out.Message += fmt.Sprintf("; %d that it selects have none: %s", len(refused), strings.Join(refused[:min(len(refused),
			shown)], "; "))
	}
	return []resources.Condition{out}
}

// isOther reports whether a generator is for services in namespaces and the service is in none, or the reverse: of such
// a pair, each names one kind.
func isOther(s *Service, no *Refused) bool {
	return no.Reason == ReasonTemplate && s.Resource.HomeNamespace() == "" && strings.HasSuffix(no.Message,
		".Namespace is empty")
}
