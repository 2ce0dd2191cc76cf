package matching

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// Tagged is what the tags of an outbound mean: the Dataplanes that carry all of them on an inbound, in one namespace.
// It is immutable.
type Tagged struct {
	Mesh string
	Tags map[string]string
	// Namespace is that of the Dataplanes; empty for the operator's. found means that some carry the tags.
	Namespace string
	found     bool
	// Protocol is what all of them speak, in the spelling of an appProtocol.
	Protocol string
	// Away holds what other zones have for the tags, one for each zone, by zone.
	Away []TaggedAway
	// Same is the MeshService of the same Dataplanes: what policies say of it is for the tags, too. It is nil without
	// one, and if there are several.
	Same *Destination
	// Problem is the reason why the tags mean nothing; empty if they mean something.
	Problem string

	system string
}

// TaggedInput is the input of NewTagged.
type TaggedInput struct {
	Mesh string
	// Zone and Namespace are the home of the outbound's proxy.
	Zone, Namespace, SystemNamespace string
	Tags                             map[string]string
	// Proxies are the Dataplanes of the mesh, Services its MeshServices, Ingresses the ZoneIngresses of all zones.
	Proxies   []*Proxy
	Services  []*Destination
	Ingresses []*resources.Resource
}

// NewTagged finds out what the tags of an outbound mean. Anybody who may write Dataplanes in a namespace may give them
// any tags, so all of them are of one namespace: that of the outbound's proxy, or else the operator's, or else the only
// one. A tag of the namespace chooses it.
func NewTagged(in *TaggedInput) *Tagged {
	system := cmp.Or(in.SystemNamespace, resources.DefaultSystemNamespace)
	t := &Tagged{Mesh: in.Mesh, Tags: in.Tags, system: system}
	found := map[string]bool{}
	for _, p := range in.Proxies {
		if p.Zone == in.Zone && len(t.inbounds(p)) > 0 {
			found[t.ownerOf(p.Namespace)] = true
		}
	}
	away := t.away(in)
	for i := range away {
		found[away[i].namespace] = true
	}
	t.choose(found, t.ownerOf(in.Namespace))
	if !t.found {
		return t
	}
	t.keepNearest(away)
	t.findSame(in)
	t.findProtocol(in)
	return t
}

// ownerOf returns a namespace, or nothing for that of the operator.
func (t *Tagged) ownerOf(namespace string) string {
	if namespace == t.system {
		return ""
	}
	return namespace
}

func (t *Tagged) choose(found map[string]bool, own string) {
	names := slices.Sorted(maps.Keys(found))
	switch {
	case len(names) == 0:
		t.Problem = "no Dataplane carries the tags " + t.text() + " on an inbound"
		return
	case found[own]:
		t.Namespace = own
	case found[""]:
	case len(names) == 1:
		t.Namespace = names[0]
	default:
		t.Problem = fmt.Sprintf("Dataplanes of several namespaces carry the tags %s on an inbound: add the tag %s", t.text(), resources.LabelNamespace)
		return
	}
	t.found = true
}

func (t *Tagged) text() string { return textOfTags(t.Tags) }

func textOfTags(tags map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, k+"="+tags[k])
	}
	return strings.Join(out, ",")
}

// maxTaggedText limits the tags in the names of listeners and clusters.
const maxTaggedText = 256

// TaggedName returns the name of the listener and the cluster of an outbound by tags: the tags, or a hash if they are
// long, or if their text could be that of others. It is no KRI. Outbounds of another namespace may mean something else.
func TaggedName(mesh, namespace string, tags map[string]string) string {
	text := textOfTags(tags)
	plain := len(text) <= maxTaggedText
	for k, v := range tags {
		plain = plain && !strings.ContainsFunc(k+v, isUnusual)
	}
	if !plain {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q", tags)) // quoted and sorted
		text = hex.EncodeToString(sum[:8])
	}
	return fmt.Sprintf("tags_%s_%s_[%s]", mesh, namespace, text)
}

// isUnusual reports whether a character of a tag is none of those of names. Nothing limits the tags of a Dataplane.
func isUnusual(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./", r)
}

// Carriers returns the inbounds of a Dataplane of this zone that the tags mean.
func (t *Tagged) Carriers(p *Proxy) []int {
	if !t.found || t.ownerOf(p.Namespace) != t.Namespace {
		return nil
	}
	return t.inbounds(p)
}

// Concerns reports whether a Dataplane carries the tags, in any namespace.
func (t *Tagged) Concerns(p *Proxy) bool { return len(t.inbounds(p)) > 0 }

func (t *Tagged) inbounds(p *Proxy) (out []int) {
	for i := range p.Inbounds {
		if !p.Inbounds[i].Egress && p.HasTags(&p.Inbounds[i], t.Tags) {
			out = append(out, i)
		}
	}
	return out
}

// ID identifies the meaning: proxies need other clusters for another one. Which Dataplanes of this zone carry the tags
// is no part of it.
func (t *Tagged) ID() string {
	out := []string{t.Namespace, t.Protocol, t.Problem}
	if t.Same != nil { // policies may name its one section
		out = append(append(out, t.Same.Key().String()), t.Same.Sections()...)
	}
	for i := range t.Away {
		a := &t.Away[i]
		out = append(out, a.Zone, a.Section)
		if a.Service != nil {
			out = append(out, a.Service.KRI.String(), strconv.FormatUint(uint64(a.Service.ports[0].number), 10))
		}
	}
	return strings.Join(out, "\n")
}

// findSame finds the MeshService of the same Dataplanes: one of this zone, or else of another, if this one has none of
// them. Otherwise what another zone says of its service would be for this zone's Dataplanes, too.
func (t *Tagged) findSame(in *TaggedInput) {
	var here, there []*Destination
	for _, d := range in.Services {
		switch more, ok := t.covered(d.Resource); {
		case !ok || more > 0 || resources.OwnerOf(d.Resource, t.system).Namespace != t.Namespace:
		case d.zone == in.Zone:
			here = append(here, d)
		default:
			there = append(there, d)
		}
	}
	some := func(p *Proxy) bool { return p.Zone == in.Zone && len(t.Carriers(p)) > 0 }
	if len(here) == 0 && !slices.ContainsFunc(in.Proxies, some) {
		here = there
	}
	if len(here) == 1 {
		t.Same = here[0]
	}
}

// findProtocol finds what all that the tags mean speak.
func (t *Tagged) findProtocol(in *TaggedInput) {
	var all, services = []string{}, resourcesOf(in.Services)
	for _, p := range in.Proxies {
		if p.Zone != in.Zone {
			continue
		}
		for _, i := range t.Carriers(p) {
			app := p.Inbounds[i].AppProtocol
			if app == "" {
				app = serviceProtocol(p, &p.Inbounds[i], services)
			}
			all = append(all, app)
		}
	}
	for i := range t.Away {
		all = append(all, t.Away[i].protocol)
	}
	t.Protocol = all[0]
	for _, other := range all[1:] {
		t.Protocol = commonProtocol(t.Protocol, other)
	}
}

func resourcesOf(all []*Destination) []*resources.Resource {
	out := make([]*resources.Resource, len(all))
	for i, d := range all {
		out[i] = d.Resource
	}
	return out
}

// commonProtocol returns what two speak: grpc is http2, and every protocol is tcp. Source: Kuma's protocols of
// services.
func commonProtocol(a, b string) string {
	if a == b {
		return a
	}
	if overHTTP2(a) && overHTTP2(b) {
		return "http2"
	}
	return "tcp"
}

func overHTTP2(protocol string) bool { return protocol == "http2" || protocol == "grpc" }
