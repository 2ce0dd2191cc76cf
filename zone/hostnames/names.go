package hostnames

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Names are the names of a mesh's services as one zone sees them. They are immutable.
type Names struct {
	// Services holds all services, sorted by KRI.
	Services []*Service
	byKey    map[resources.Key]*Service
}

// Service is a service with its names.
type Service struct {
	Resource *resources.Resource
	KRI      resources.KRI
	// VIP is the service's address. It is routed nowhere: see Loopback.
	VIP netip.Addr
	// Addresses are the service's own, from the platform that runs it here, such as its ClusterIPs.
	Addresses []netip.Addr
	// Given are its names, by generator. Refused are the generators that select it but give it no name.
	Given   []Given
	Refused []Refused

	rank int
	// far means that the service comes from another zone.
	far bool
}

// OfOperator reports whether an operator of the zone itself or of the global wrote the service.
func (s *Service) OfOperator() bool { return s.rank == 0 }

// Given is a name and the generator that gave it.
type Given struct {
	Hostname  string
	Generator *resources.Resource
}

// Reasons of Refused.
const (
	ReasonTemplate  = "TemplateError"
	ReasonNamespace = "NamespaceMissing"
	ReasonCollision = "Collision"
)

// Refused is a generator that selects a service but gives it no name.
type Refused struct {
	Generator       *resources.Resource
	Reason, Message string
}

// generator is a decoded HostnameGenerator.
type generator struct {
	resource *resources.Resource
	kind     resources.Type
	labels   map[string]string
	template *resources.HostnameTemplate
	problem  error
}

// kinds are the types of services, in the order of their addresses.
var kinds = []resources.Type{
	resources.TypeMeshService, resources.TypeMeshExternalService, resources.TypeMeshMultiZoneService,
}

// Read computes the names of a mesh.
func Read(snap store.Snapshot, mesh string, home resources.Home) *Names {
	var services []*resources.Resource
	for _, t := range kinds {
		services = slices.AppendSeq(services, snap.List(store.Query{Type: t, Mesh: mesh}))
	}
	return Of(services, slices.Collect(snap.List(store.Query{Type: resources.TypeHostnameGenerator})), home)
}

// Of computes the names that generators give to the services of one mesh.
func Of(services, generators []*resources.Resource, home resources.Home) *Names {
	n := &Names{byKey: make(map[resources.Key]*Service, len(services))}
	system := cmp.Or(home.SystemNamespace, resources.DefaultSystemNamespace)
	for _, r := range services {
		s := &Service{Resource: r, KRI: resources.KRIOf(r), rank: rankOf(r, home.Zone, system),
			far: r.Zone() != "" && r.Zone() != home.Zone}
		if !s.far && r.Type == resources.TypeMeshService {
			s.Addresses = ownAddresses(r)
		}
		n.Services, n.byKey[r.Key] = append(n.Services, s), s
	}
	slices.SortFunc(n.Services, func(a, b *Service) int { return strings.Compare(a.KRI.String(), b.KRI.String()) })
	n.address()
	n.name(readGenerators(generators), system)
	return n
}

// Find returns a service; nil if it is not of the mesh.
func (n *Names) Find(key resources.Key) *Service { return n.byKey[key] }

// rankOf returns how far the zone trusts the author's name for a service: 0 for operators of the zone itself and of the
// global, 1 for all others.
func rankOf(r *resources.Resource, zone, system string) int {
	if resources.OwnerOf(r, system).IsOperator() && (r.Zone() == "" || r.Zone() == zone) {
		return 0
	}
	return 1
}

func readGenerators(all []*resources.Resource) []*generator {
	var out []*generator
	for _, r := range all {
		spec, err := resources.SpecAs[resources.HostnameGenerator](r)
		if err != nil {
			continue // its condition reports it
		}
		g := &generator{resource: r}
		g.kind, g.labels = spec.Selector.Of()
		g.template, g.problem = resources.ParseHostnameTemplate(spec.Template)
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *generator) int { return strings.Compare(a.resource.Name, b.resource.Name) })
	return out
}

func (g *generator) selects(r *resources.Resource) bool {
	if g.kind != r.Type {
		return false
	}
	for k, v := range g.labels {
		if got, ok := r.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// claim is a name that a generator proposes for a service.
type claim struct {
	service   *Service
	generator *generator
}

// name assigns names. A name that several services claim goes to an operator's service. If there is none, or more than
// one, nobody gets it: otherwise a later service, or one that sorts first, could take it over.
func (n *Names) name(generators []*generator, system string) {
	claims := map[string][]claim{}
	for _, s := range n.Services {
		for _, g := range generators {
			if !g.selects(s.Resource) {
				continue
			}
			hostname, refused := g.claim(s, system, generators)
			if refused != nil {
				s.Refused = append(s.Refused, *refused)
				continue
			}
			claims[hostname] = append(claims[hostname], claim{s, g})
		}
	}
	for hostname, of := range claims {
		winner, text := winnerOf(of), ""
		for _, c := range of {
			if c.service != winner {
				if text == "" { // it is the same for all, of whom there may be thousands
					text = collision(hostname, of, winner)
				}
				c.service.Refused = append(c.service.Refused, Refused{c.generator.resource, ReasonCollision, text})
			} else if !slices.ContainsFunc(winner.Given, func(g Given) bool { return g.Hostname == hostname }) {
				winner.Given = append(winner.Given, Given{hostname, c.generator.resource})
			}
		}
	}
	for _, s := range n.Services {
		slices.SortFunc(s.Given, func(a, b Given) int { return strings.Compare(a.Hostname, b.Hostname) })
		slices.SortFunc(s.Refused, func(a, b Refused) int { return strings.Compare(a.Generator.Name, b.Generator.Name) })
	}
}

// claim returns the name of a service, or why it gets none. Names without the namespace are for operators: otherwise
// the owner of any namespace could take another service's name.
func (g *generator) claim(s *Service, system string, all []*generator) (string, *Refused) {
	refuse := func(reason, message string) (string, *Refused) {
		return "", &Refused{Generator: g.resource, Reason: reason, Message: message}
	}
	if g.problem != nil {
		return refuse(ReasonTemplate, "template: "+g.problem.Error())
	}
	hostname, err := g.template.Render(s.Resource)
	if err != nil {
		return refuse(ReasonTemplate, "template: "+err.Error())
	}
	if !g.template.Namespaced() && !resources.OwnerOf(s.Resource, system).IsOperator() {
		return refuse(ReasonNamespace, fmt.Sprintf("%s: the template does not have {{ .Namespace }} between dots, so that a service of any namespace could take the name: only services without a namespace get one", hostname))
	}
	if text := g.misleads(s, hostname, system, all); text != "" {
		return refuse(ReasonNamespace, text)
	}
	return hostname, nil
}

// misleads returns why a name of an owner's service reads as one of another namespace, whether or not that has a
// service: the owner chooses names and labels, including dots.
func (g *generator) misleads(s *Service, hostname, system string, all []*generator) string {
	if resources.OwnerOf(s.Resource, system).IsOperator() {
		return ""
	}
	if name := g.template.Misleading(s.Resource); name != "" {
		return fmt.Sprintf("%s: %s has a dot, so that the name could be one of another namespace", hostname, name)
	}
	for _, other := range all {
		if other == g || other.problem != nil {
			continue
		}
		if ns, ok := other.template.NamespaceIn(hostname); ok && ns != s.Resource.HomeNamespace() {
			return fmt.Sprintf("%s is a name of the namespace %s by the HostnameGenerator %s", hostname, ns, other.resource.DisplayName())
		}
	}
	return ""
}

// winnerOf returns the only service of the best rank; nil if several have it.
func winnerOf(claims []claim) *Service {
	var best *Service
	alone := true
	for _, c := range claims {
		switch {
		case best == nil || c.service.rank < best.rank:
			best, alone = c.service, true
		case c.service != best && c.service.rank == best.rank:
			alone = false
		}
	}
	if !alone {
		return nil
	}
	return best
}

func collision(hostname string, claims []claim, winner *Service) string {
	if winner != nil {
		return fmt.Sprintf("%s is the name of %s", hostname, winner.KRI)
	}
	var kris []string
	for _, c := range claims {
		kris = append(kris, c.service.KRI.String())
	}
	slices.Sort(kris)
	kris = slices.Compact(kris)
	const shown = 4
	text := strings.Join(kris[:min(len(kris), shown)], ", ")
	if len(kris) > shown {
		text += fmt.Sprintf(" and %d more", len(kris)-shown)
	}
	return fmt.Sprintf("%s would be the name of %s, so no service gets it: change the template, or one of the services", hostname, text)
}
