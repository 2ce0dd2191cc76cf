package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// forecast completes the answers to dry runs with the proxies that a policy affects, in its current or its new version.
func (h *handlers) forecast(p *api.Preview) error {
	f := &forecaster{views: h.views, after: p.After, reader: p.Reader, meshes: map[string]*previewedMesh{}}
	for i := range p.Changes {
		f.complete(&p.Changes[i])
	}
	return nil
}

// forecaster serves one preview.
type forecaster struct {
	views  *views
	after  store.Snapshot
	reader *api.Reader
	meshes map[string]*previewedMesh
}

// previewedMesh is a mesh in its current state, nil if it is new, and in its new state.
type previewedMesh struct {
	before, after *view
	// proxies are those of the new state; kris holds their KRIs in the same order.
	proxies []*matching.Proxy
	kris    []string
	// hidden holds the proxies that the caller may not read.
	hidden map[string]bool
}

func (f *forecaster) complete(c *api.PreviewChange) {
	if c.New.Type == resources.TypeDataplane {
		c.Forecast.Proxies = f.proxiesOf([]string{c.Forecast.KRI}, nil, c.Forecast.Result)
		return
	}
	if c.New.Mesh == "" {
		return
	}
	mesh := f.mesh(c.New.Mesh)
	if c.New.Type == resources.TypeHTTPRouteGroup || c.New.Type == resources.TypeTCPRoute {
		c.Forecast.Proxies = f.proxiesOf(mesh.concerned(mesh.traffic(c.New)), mesh.hidden, c.Forecast.Result)
		return
	}
	policy := mesh.after.policies[c.New.Key]
	if policy == nil {
		return
	}
	versions := []*matching.Policy{policy}
	if mesh.before != nil && mesh.before.policies[c.New.Key] != nil {
		versions = append(versions, mesh.before.policies[c.New.Key])
	}
	c.Forecast.Proxies = f.proxiesOf(mesh.concerned(versions), mesh.hidden, c.Forecast.Result)
	f.warnElsewhere(c.Forecast)
}

// warnElsewhere adds a warning that a zone knows only its own proxies: a resource that syncs to other zones affects
// theirs too.
func (f *forecaster) warnElsewhere(item *api.ForecastItem) {
	zone := f.views.config.Zone
	others := slices.DeleteFunc(slices.Clone(item.SyncedTo),
		func(server string) bool { return server == api.ModeGlobal || server == zone })
	if zone == "" || len(others) == 0 || item.Result == api.ResultUnchanged {
		return
	}
	const shown = 4
	list := strings.Join(others[:min(len(others), shown)], ", ")
	if more := len(others) - shown; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	item.Warnings = append(item.Warnings, fmt.Sprintf(
		"only the proxies in %s are counted, and the resource is synced to %s, whose proxies this zone does not know: "+
			"once it is stored, the global shows which proxies it affects (causewayctl inspect policy)", zone, list))
}

// traffic returns the TrafficTargets that may refer to a traffic spec.
func (m *previewedMesh) traffic(spec *resources.Resource) []*matching.Policy {
	var out []*matching.Policy
	for _, p := range m.after.policies {
		target, err := resources.SpecAs[resources.TrafficTarget](p.Resource)
		if p.Resource.Type != resources.TypeTrafficTarget || err != nil {
			continue
		}
		if slices.ContainsFunc(slices.Concat(target.Rules, target.Specs), func(r resources.TrafficRule) bool {
			return r.Kind == string(spec.Type) && r.Name == spec.DisplayName()
		}) && (spec.Zone() == "" || spec.Zone() == p.Resource.Zone()) {
			out = append(out, p)
		}
	}
	return out
}

// concerned returns the proxies that a policy selects in one of its versions, in the zones that it reaches.
func (m *previewedMesh) concerned(versions []*matching.Policy) []string {
	var kris []string
	for i, proxy := range m.proxies {
		if slices.ContainsFunc(versions, func(p *matching.Policy) bool {
			return p.Enforced() && matching.Selects(p, proxy) && m.after.config.crosses(p.Resource, proxy.Zone)
		}) {
			kris = append(kris, m.kris[i])
		}
	}
	return kris
}

// proxiesOf counts hidden proxies and truncates the list. A resource that does not change affects no proxies.
func (f *forecaster) proxiesOf(kris []string, hidden map[string]bool, result string) *api.ForecastProxies {
	if result == api.ResultUnchanged {
		kris = nil
	}
	all := len(kris)
	kris = slices.DeleteFunc(kris, func(kri string) bool { return hidden[kri] })
	slices.Sort(kris)
	return &api.ForecastProxies{Zone: f.views.config.Zone, Total: len(kris), LeftOut: all - len(kris),
		Items: append([]string{}, kris[:min(len(kris), api.MaxForecastProxies)]...)}
}

// mesh reads a mesh once. It skips a Dataplane that does not decode.
func (f *forecaster) mesh(name string) *previewedMesh {
	if m := f.meshes[name]; m != nil {
		return m
	}
	m := &previewedMesh{before: f.views.of(name), hidden: map[string]bool{}}
	m.after = newView(f.views.config, f.after, name, m.before)
	for r := range f.after.List(store.Query{Type: resources.TypeDataplane, Mesh: name}) {
		if proxy, err := matching.NewProxy(r); err == nil {
			m.proxies = append(m.proxies, proxy.WithGateways(m.after.gateways, f.views.config.SystemNamespace))
			kri := resources.KRIOf(r).String()
			m.kris, m.hidden[kri] = append(m.kris, kri), !f.reader.May(r)
		}
	}
	f.meshes[name] = m
	return m
}
