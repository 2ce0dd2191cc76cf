package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// defaultMesh is the mesh of a question that does not name one.
const defaultMesh = "default"

// Query is one question: may From do this at To?
type Query struct {
	// Mesh is "default" when empty.
	Mesh string `json:"mesh,omitempty"`
	// Zone and Namespace narrow To, for names that exist in several zones or namespaces.
	Zone      string `json:"zone,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// To is the name of a Dataplane or else of a MeshService, a KRI of either (its section is the inbound), or labels
	// of Dataplanes, `app=backend,version=v1`.
	To string `json:"to"`
	// Kind, Dataplane or MeshService, selects the kind that a name refers to.
	Kind resources.Type `json:"kind,omitempty"`
	// Inbound is the name or port number of an inbound, or of a service's port. It may be empty if there is only one.
	Inbound string `json:"inbound,omitempty"`
	// From is the client's SPIFFE ID.
	From string `json:"from"`
	// Method defaults to GET and Path to /. Both are for HTTP inbounds only.
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	// SNI is the server name of the client's TLS handshake.
	SNI string `json:"sni,omitempty"`
	// Headers are the request's headers that TrafficTargets match, by name in any case; for HTTP inbounds only.
	Headers map[string]string `json:"headers,omitempty"`

	// left counts the proxies that the question may also select and that the caller may not read.
	left int
}

// QueryError reports a wrong field in a question, or a field that names something that does not exist.
type QueryError struct {
	Field, Reason string
	// NotFound reports that the field is well formed, but names something that does not exist.
	NotFound bool
}

func (e *QueryError) Error() string { return e.Field + ": " + e.Reason }

func badQuery(field, format string, args ...any) error {
	return &QueryError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// subject is one inbound of one proxy.
type subject struct {
	proxy *matching.Proxy
	in    *matching.InboundPort
}

func (s subject) kri() resources.KRI {
	return resources.KRI{Short: "dp", Mesh: s.proxy.Key.Mesh, Zone: s.proxy.Zone, Namespace: s.proxy.Namespace,
		Name: s.proxy.Name, Section: s.in.Section()}
}

// subjects returns the inbounds that a question selects, at least one.
func (w *World) subjects(q *Query) ([]subject, error) {
	if err := q.readKRI(); err != nil {
		return nil, err
	}
	m := w.mesh(q.Mesh)
	if q.To == "" {
		return nil, badQuery("to", "is empty: name a Dataplane, a MeshService, or labels such as app=backend")
	}
	if strings.Contains(q.To, "=") {
		labels, err := parseLabels(q.To)
		if err != nil {
			return nil, err
		}
		q.left = len(m.hidden.proxies) // all: a count of those with the labels would reveal labels
		return q.inboundsOf(m.within(q, func(p *matching.Proxy) bool { return carries(p, labels) }))
	}
	if q.Kind != resources.TypeMeshService {
		found := m.within(q, func(p *matching.Proxy) bool { return p.Name == q.To || p.Key.Name == q.To })
		if len(found) > 0 || q.Kind == resources.TypeDataplane {
			return q.inboundsOf(found)
		}
	}
	return m.served(q)
}

// readKRI parses a destination that the question names by KRI.
func (q *Query) readKRI() error {
	q.Mesh = cmp.Or(q.Mesh, defaultMesh)
	if strings.HasPrefix(q.Inbound, "kri_") {
		kri, err := resources.ParseKRI(q.Inbound)
		if err != nil {
			return badQuery("inbound", "%v", err)
		}
		q.Inbound = kri.Section
	}
	if !strings.HasPrefix(q.To, "kri_") {
		return nil
	}
	kri, err := resources.ParseKRI(q.To)
	if err != nil {
		return badQuery("to", "%v", err)
	}
	d, _ := resources.LookupShort(kri.Short)
	if d.Type != resources.TypeDataplane && d.Type != resources.TypeMeshService {
		return badQuery("to", "%s names a %s: want a Dataplane or a MeshService", q.To, d.Type)
	}
	q.Mesh, q.Zone, q.Namespace, q.To, q.Kind = kri.Mesh, kri.Zone, kri.Namespace, kri.Name, d.Type
	q.Inbound = cmp.Or(q.Inbound, kri.Section)
	return nil
}

// within returns the proxies in the question's zone and namespace for which want returns true.
func (m *mesh) within(q *Query, want func(*matching.Proxy) bool) []*matching.Proxy {
	var out []*matching.Proxy
	for _, p := range m.proxies {
		if m.hidesProxy(p) {
			continue
		}
		if (q.Zone == "" || p.Zone == q.Zone) && (q.Namespace == "" || p.Namespace == q.Namespace ||
			p.Key.Namespace == q.Namespace) && want(p) {
			out = append(out, p)
		}
	}
	return out
}

func (q *Query) inboundsOf(proxies []*matching.Proxy) ([]subject, error) {
	if len(proxies) == 0 {
		return nil, &QueryError{Field: "to", Reason: q.nothing(), NotFound: true}
	}
	var out []subject
	for _, p := range proxies {
		switch in := p.Inbound(q.Inbound); {
		case in != nil:
			out = append(out, subject{p, in})
		case q.Inbound == "" && len(p.Inbounds) == 1:
			out = append(out, subject{p, &p.Inbounds[0]})
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	return nil, noInbound(q.Inbound, proxies[0])
}

func sectionsOf(p *matching.Proxy) []*matching.InboundPort {
	out := make([]*matching.InboundPort, len(p.Inbounds))
	for i := range p.Inbounds {
		out[i] = &p.Inbounds[i]
	}
	return out
}

func noInbound(section string, p *matching.Proxy) error {
	have := "it has " + strings.Join(sections(p), ", ")
	if len(p.Inbounds) == 0 {
		have = "it has none"
	}
	if section == "" {
		return badQuery("inbound", "name an inbound of %s: %s", p.Name, have)
	}
	return &QueryError{Field: "inbound", Reason: fmt.Sprintf("%s has no inbound %q: %s", p.Name, section, have),
		NotFound: true}
}

func sections(p *matching.Proxy) []string {
	var out []string
	for i := range p.Inbounds {
		out = append(out, p.Inbounds[i].Section())
	}
	return out
}

func (q *Query) nothing() string {
	text := fmt.Sprintf("mesh %q has no Dataplane or MeshService %q", q.Mesh, q.To)
	switch {
	case strings.Contains(q.To, "="):
		text = fmt.Sprintf("mesh %q has no Dataplane with the labels %q", q.Mesh, q.To)
	case q.Kind != "":
		text = fmt.Sprintf("mesh %q has no %s %q", q.Mesh, q.Kind, q.To)
	}
	if q.Zone != "" {
		text += fmt.Sprintf(" in zone %q", q.Zone)
	}
	if q.Namespace != "" {
		text += fmt.Sprintf(" in namespace %q", q.Namespace)
	}
	return text
}

// served returns the inbounds that a MeshService leads to.
func (m *mesh) served(q *Query) ([]subject, error) {
	known := false
	var out, others []subject
	for _, r := range m.services {
		if m.hidden.kris[resources.KRIOf(r).String()] {
			continue
		}
		if r.DisplayName() != q.To && r.Name != q.To || q.Zone != "" && r.Zone() != q.Zone || q.Namespace != "" &&
			r.HomeNamespace() != q.Namespace {
			continue
		}
		known = true
		for _, p := range m.proxies {
			if m.hidesProxy(p) {
				if slices.ContainsFunc(sectionsOf(p),
					func(in *matching.InboundPort) bool { return matching.Serves(r, p, in, "") }) {
					q.left++
				}
				continue
			}
			for i := range p.Inbounds {
				in := &p.Inbounds[i]
				switch {
				case matching.Serves(r, p, in, q.Inbound), q.Inbound == in.Section() && matching.Serves(r, p, in, ""):
					out = append(out, subject{p, in})
				case matching.Serves(r, p, in, ""):
					others = append(others, subject{p, in})
				}
			}
		}
	}
	switch {
	case !known:
		return nil, &QueryError{Field: "to", Reason: q.nothing(), NotFound: true}
	case len(out) > 0 && q.Inbound == "" &&
		slices.ContainsFunc(out, func(s subject) bool { return s.in.Section() != out[0].in.Section() }):
		return nil, badQuery("inbound", "name a port of %s", q.To)
	case len(out) == 0 && len(others) > 0:
		return nil, &QueryError{Field: "inbound", Reason: fmt.Sprintf("%s has no port %q: its first inbound is %s",
			q.To, q.Inbound, others[0].in.Section()), NotFound: true}
	case len(out) == 0:
		return nil, &QueryError{Field: "to", Reason: fmt.Sprintf("MeshService %q leads to no inbound of any Dataplane",
			q.To), NotFound: true}
	}
	return out, nil
}

func parseLabels(text string) (map[string]string, error) {
	out := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || key == "" {
			return nil, badQuery("to", "%q is not a label: want key=value, several separated by commas", pair)
		}
		out[key] = value
	}
	return out, nil
}

func carries(p *matching.Proxy, labels map[string]string) bool {
	for k, v := range labels {
		if have, ok := p.Labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// request returns the request as the inbound's filter sees it. refused is the reason why Envoy answers before it calls
// the filter, or empty.
func (q *Query) request(protocol matching.Protocol) (req rbac.Request, refused string, err error) {
	if q.From == "" {
		return req, "", badQuery("from", "is empty: want the client's SPIFFE ID, spiffe://trust-domain/path")
	}
	req = rbac.Request{Protocol: protocol, URISANs: []string{q.From}, SNI: q.SNI}
	if protocol != matching.HTTP {
		return req, "", nil
	}
	for name, value := range q.Headers {
		if req.Headers == nil {
			req.Headers = map[string]string{}
		}
		req.Headers[strings.ToLower(name)] = value
	}
	req.Method = cmp.Or(q.Method, "GET")
	if req.Method != strings.ToUpper(req.Method) {
		return req, "", badQuery("method", "%q is not in capitals", q.Method)
	}
	if req.Path, refused = rbac.NormalizePath(cmp.Or(q.Path, "/")); refused == "" &&
		!resources.IsRegisteredMethod(req.Method) {
		refused = fmt.Sprintf("%s is not a registered method", q.Method)
	}
	return req, refused, nil
}
