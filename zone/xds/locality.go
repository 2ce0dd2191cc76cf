package xds

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// preference orders the endpoints of a backend for a proxy, by the localityAwareness of its MeshLoadBalancingStrategy.
// Proxies with equal preferences share endpoints. nil is the default: the local zone first, other zones if it has no
// endpoint left. It is immutable.
type preference struct {
	// Alike treats all zones as one.
	Alike bool
	// Affinity splits the local endpoints by the first affinity that they share with the caller. Endpoints that share
	// none have weight 1.
	Affinity []affinity
	// Others lists other zones by descending priority. If it is empty, other zones get no requests.
	Others []zoneList
	// Factor is Envoy's overprovisioning factor in percent; 0 is Envoy's default.
	Factor uint32

	id string
}

// affinity is a tag of the caller.
type affinity struct {
	Key    string
	Values []string
	Weight uint32
}

// zoneList selects the zones in it, or with Except all others.
type zoneList struct {
	Except bool
	Zones  []string
}

var allZones = zoneList{Except: true}

// defaultThreshold is the percentage of healthy endpoints below which the next zones get requests too, if crossZone
// sets none. Source: Kuma's MeshLoadBalancingStrategy.
const defaultThreshold = 50

// prefers returns the caller's preference among the endpoints of a backend.
func (s *sender) prefers(b *backend) *preference {
	l := decode[resources.BalancingConf](s, s.balancing.For(b.key())).LocalityAwareness
	if l == nil {
		return nil
	}
	if l.LocalZone != nil && len(l.LocalZone.AffinityTags) > 0 {
		s.private = true // the proxy's own tags decide
	}
	ofManyZones := b.tagged != nil || b.service.Resource.Type == resources.TypeMeshMultiZoneService
	return preferenceOf(l, s.target.match, ofManyZones)
}

// preferenceOf reads a localityAwareness for a caller. For a service of one zone, it ignores the settings for other
// zones.
func preferenceOf(l *resources.LocalityAwareness, caller *matching.Proxy, ofManyZones bool) *preference {
	p := &preference{}
	if l.LocalZone != nil {
		p.Affinity = affinitiesOf(l.LocalZone.AffinityTags, caller)
	}
	switch {
	case !ofManyZones:
		p.Others = []zoneList{allZones}
	case l.CrossZone != nil:
		p.Others, p.Factor = othersOf(l.CrossZone, caller.Zone), factorOf(l.CrossZone.FailoverThreshold)
	case l.LocalZone == nil:
		p.Others = []zoneList{allZones}
		p.Alike = l.Disabled != nil && *l.Disabled
	}
	if !p.Alike && len(p.Affinity) == 0 && p.Factor == 0 && len(p.Others) > 0 {
		return nil
	}
	text, _ := json.Marshal(p) // strings and numbers
	sum := sha256.Sum256(text)
	p.id = hex.EncodeToString(sum[:8])
	return p
}

// affinitiesOf returns the affinities for the caller's tags. Without weights, each tag gets nine tenths of the
// remainder.
func affinitiesOf(tags []resources.AffinityTag, caller *matching.Proxy) (out []affinity) {
	tags = tags[:min(len(tags), resources.MaxAffinityTags)] // only a peer has more
	for i, tag := range tags {
		a := affinity{Key: tag.Key, Values: tagValues(caller, tag.Key), Weight: 9 * uint32(math.Pow10(min(len(tags)-1-i, 8)))}
		if tag.Weight != nil {
			a.Weight = min(max(*tag.Weight, 1), resources.MaxAffinityWeight)
		}
		if len(a.Values) > 0 {
			out = append(out, a)
		}
	}
	return out
}

// tagValues returns a proxy's values for a key: its label, or else the tags of its inbounds.
func tagValues(p *matching.Proxy, key string) []string {
	if v, ok := p.Labels[key]; ok {
		return []string{v}
	}
	var out []string
	for i := range p.Inbounds {
		if v, ok := p.Inbounds[i].Tags[key]; ok {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// othersOf returns the zones of the rules for callers in a zone, up to the first rule of type None.
func othersOf(c *resources.CrossZone, zone string) (out []zoneList) {
	for i := range c.Failover {
		r := &c.Failover[i]
		if r.From != nil && len(r.From.Zones) > 0 && !slices.Contains(r.From.Zones, zone) {
			continue
		}
		switch r.To.Type {
		case resources.FailoverAny:
			return append(out, allZones)
		case resources.FailoverAnyExcept:
			out = append(out, zoneList{Except: true, Zones: r.To.Zones})
		case resources.FailoverOnly:
			out = append(out, zoneList{Zones: r.To.Zones})
		default:
			return out
		}
	}
	return out
}

func factorOf(t *resources.FailoverThreshold) uint32 {
	percentage := float64(defaultThreshold)
	if t != nil {
		if n, err := resources.ParsePercentage(t.Percentage); err == nil && n > 0 {
			percentage = n
		}
	}
	return uint32(min(math.Ceil(100*100/percentage), math.MaxInt32))
}

// locality is a set of equivalent endpoints.
type locality struct {
	endpoints []behind
	// name distinguishes it from others of its priority. weight is 0 if no locality has one.
	name   string
	weight uint32
}

// sort returns the localities of each priority, from the local endpoints and those of other zones. None is empty. It
// empties away.
func (p *preference) sort(here []behind, away map[string][]behind) [][]locality {
	if p == nil {
		p = &preference{Others: []zoneList{allZones}}
	}
	if p.Alike {
		here = append(here, allZones.take(away)...)
	}
	var out [][]locality
	if own := p.split(here); len(own) > 0 {
		out = append(out, own)
	}
	weight := uint32(min(len(p.Affinity), 1)) // if some have weights, Envoy never chooses one without
	for _, zones := range p.Others {
		if more := zones.take(away); len(more) > 0 {
			out = append(out, []locality{{endpoints: more, weight: weight}})
		}
	}
	for i, all := range out {
		out[i] = nil
		for _, l := range all {
			out[i] = append(out[i], l.apart()...)
		}
	}
	return out
}

// apart moves each address that several ingresses share, as behind a load balancer, into a locality that is named after
// them. When one leaves, the name changes, and Envoy takes the address for another host: requests in progress end on their
// connections, and new ones get new connections, which lead to the ingresses that remain. Each address keeps its share of
// the requests.
func (l locality) apart() []locality {
	names := map[endpoint][]string{}
	for _, e := range l.endpoints {
		if e.ingress != "" {
			names[e.endpoint] = append(names[e.endpoint], e.ingress)
		}
	}
	shared, alone := map[endpoint]*locality{}, map[endpoint]struct{}{}
	for at, of := range names {
		slices.Sort(of)
		if of = slices.Compact(of); len(of) > 1 {
			shared[at] = &locality{name: hashOf(strings.Join(of, "\n")), weight: l.weight}
		}
	}
	if len(shared) == 0 {
		return []locality{l}
	}
	rest := locality{name: l.name}
	for _, e := range l.endpoints {
		if to := shared[e.endpoint]; to != nil {
			to.endpoints = append(to.endpoints, e)
			continue
		}
		rest.endpoints = append(rest.endpoints, e)
		alone[e.endpoint] = struct{}{}
	}
	var out []locality
	if rest.weight = l.weight * uint32(len(alone)); len(alone) > 0 {
		out = append(out, rest)
	}
	for _, at := range slices.SortedFunc(maps.Keys(shared), endpoint.compare) {
		out = append(out, *shared[at])
	}
	return out
}

// split groups the local endpoints by the first affinity that they share with the caller.
func (p *preference) split(here []behind) (out []locality) {
	lists := make([][]behind, len(p.Affinity)+1)
	for _, e := range here {
		i := slices.IndexFunc(p.Affinity, func(a affinity) bool { return a.shared(e.proxy) })
		if i < 0 {
			i = len(p.Affinity)
		}
		lists[i] = append(lists[i], e)
	}
	for i, list := range lists {
		switch {
		case len(list) == 0:
		case i < len(p.Affinity):
			out = append(out, locality{endpoints: list, name: p.Affinity[i].Key, weight: p.Affinity[i].Weight})
		case i == 0: // there are no affinities
			out = append(out, locality{endpoints: list})
		default:
			out = append(out, locality{endpoints: list, weight: 1})
		}
	}
	return out
}

func (a affinity) shared(p *matching.Proxy) bool {
	return p != nil &&
		slices.ContainsFunc(tagValues(p, a.Key), func(v string) bool { return slices.Contains(a.Values, v) })
}

// take removes the endpoints of the list's zones from away and returns them.
func (l zoneList) take(away map[string][]behind) (out []behind) {
	for zone, endpoints := range away {
		if slices.Contains(l.Zones, zone) != l.Except {
			out = append(out, endpoints...)
			delete(away, zone)
		}
	}
	return out
}

// assignment returns the name of a cluster's endpoints for proxies with this preference.
func (p *preference) assignment(cluster string) string {
	if p == nil {
		return cluster
	}
	return cluster + variantMark + p.id
}

// variantMark separates the name of a cluster from the id of a preference. No KRI contains it.
const variantMark = "#"

// clusterOf returns the cluster of an assignment.
func clusterOf(assignment string) string {
	assignment = strings.TrimPrefix(strings.TrimPrefix(assignment, localMark), egressMark)
	name, _, _ := strings.Cut(assignment, variantMark)
	return name
}

// weigh makes Envoy choose the cluster's endpoints by the weights of localities.
func (s *sender) weigh(c *clusterv3.Cluster, b *backend) {
	if b.prefer == nil || len(b.prefer.Affinity) == 0 {
		return
	}
	if c.GetCommonLbConfig().GetZoneAwareLbConfig() != nil {
		s.problem(originOf(s.balancing.For(b.key())),
			"affinityTags and the failTrafficOnPanic of a MeshHealthCheck do not go together: affinityTags hold")
	}
	lbConfig(c).LocalityConfigSpecifier = &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig_{
		LocalityWeightedLbConfig: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig{},
	}
}
