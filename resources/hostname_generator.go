package resources

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// HostnameGenerator gives the services that it selects names that callers in the mesh resolve. A server's operator
// writes it: it belongs to no mesh and no namespace. Source: the HostnameGenerator of Kuma.
type HostnameGenerator struct {
	Selector HostnameSelector `json:"selector"`
	// Template is the name, with placeholders: see HostnameTemplate.
	Template string `json:"template"`
}

// HostnameSelector selects services of one kind, in all meshes: exactly one of the fields is set. Empty labels select
// all services of the kind.
type HostnameSelector struct {
	MeshService          *LabelSelector `json:"meshService,omitempty"`
	MeshExternalService  *LabelSelector `json:"meshExternalService,omitempty"`
	MeshMultiZoneService *LabelSelector `json:"meshMultiZoneService,omitempty"`
}

// Of returns the kind of the services and the labels that they carry. The kind is empty if none is set.
func (s *HostnameSelector) Of() (Type, map[string]string) {
	switch {
	case s.MeshService != nil:
		return TypeMeshService, s.MeshService.MatchLabels
	case s.MeshExternalService != nil:
		return TypeMeshExternalService, s.MeshExternalService.MatchLabels
	case s.MeshMultiZoneService != nil:
		return TypeMeshMultiZoneService, s.MeshMultiZoneService.MatchLabels
	}
	return "", nil
}

// HostnameVariables returns the variables of a hostname template, besides labels. The caller owns the slice.
func HostnameVariables() []string {
	return []string{"DisplayName", "Name", "Namespace", "Mesh", "Zone"}
}

// HostnameTemplate is a host name with placeholders for properties of a service: `{{ .DisplayName }}` and `{{ label
// "key" }}`. It is immutable.
type HostnameTemplate struct {
	parts []templatePart
	// namespace is the index of the part that is the namespace, whole, between dots; -1 if there is none.
	namespace int
	// reads finds the namespace in a name.
	reads *regexp.Regexp
}

// ParseHostnameTemplate parses a template.
func ParseHostnameTemplate(text string) (*HostnameTemplate, error) {
	parts, err := parseTemplate(text, HostnameVariables(), true)
	if err != nil {
		return nil, err
	}
	t := &HostnameTemplate{parts: parts, namespace: -1}
	var sample strings.Builder
	for i := range parts {
		text := parts[i].text
		switch {
		case parts[i].variable != "" || parts[i].label != "":
			text = "x"
		case !templateText.MatchString(text):
			return nil, fmt.Errorf("%q cannot be in a host name: want lower-case letters, digits, '-' and '.'", shorten(text))
		}
		sample.WriteString(text)
		if parts[i].variable == "Namespace" && t.isWhole(i) {
			t.namespace = i
		}
	}
	if err := checkHostname(sample.String()); err != nil {
		return nil, err
	}
	if len(parts) == 1 && parts[0].text != "" {
		return nil, fmt.Errorf("%q is the same name for every service: name at least one variable or label", shorten(text))
	}
	t.read()
	return t, nil
}

// read builds the expression that finds the namespace. Without a variable before it, the namespace is located from the
// left. Otherwise it is located from the right, and variables there must be single labels: see Misleading.
func (t *HostnameTemplate) read() {
	if t.namespace < 0 {
		return
	}
	left, right := `(?:.+)`, `(?:[^.]+)`
	if !t.variesBefore() {
		left, right = `(?:[^.]+)`, `(?:.+)`
	}
	var out strings.Builder
	for i := range t.parts {
		switch {
		case t.parts[i].text != "":
			out.WriteString(regexp.QuoteMeta(t.parts[i].text))
		case i == t.namespace:
			out.WriteString(`([^.]+)`)
		case i < t.namespace:
			out.WriteString(left)
		default:
			out.WriteString(right)
		}
	}
	t.reads = regexp.MustCompile("^" + out.String() + "$")
}

// variesBefore reports whether a variable precedes the namespace.
func (t *HostnameTemplate) variesBefore() bool {
	return slices.ContainsFunc(t.parts[:t.namespace], func(p templatePart) bool { return p.text == "" })
}

// NamespaceIn returns the namespace whose services the template gives the name; ok is false if there is none.
func (t *HostnameTemplate) NamespaceIn(hostname string) (namespace string, ok bool) {
	if t.reads == nil || !strings.HasSuffix(hostname, t.parts[len(t.parts)-1].text) {
		return "", false
	}
	found := t.reads.FindStringSubmatch(hostname)
	if found == nil {
		return "", false
	}
	return found[1], true
}

// Misleading returns the service's variable or label whose value has a dot after the namespace, so that another
// namespace could appear in its place; empty if there is none.
func (t *HostnameTemplate) Misleading(r *Resource) string {
	if t.namespace < 0 || !t.variesBefore() {
		return ""
	}
	for i := t.namespace + 1; i < len(t.parts); i++ {
		if name, value := t.parts[i].of(r); strings.Contains(value, ".") {
			return name
		}
	}
	return ""
}

// of returns a property of a service, by its name in a template; empty for text.
func (p *templatePart) of(r *Resource) (name, value string) {
	switch {
	case p.text != "":
		return "", ""
	case p.label != "":
		return "label " + p.label, r.Labels[p.label]
	}
	return "." + p.variable, hostnameVariable(r, p.variable)
}

var templateText = regexp.MustCompile(`^[-a-z0-9.]*$`)

// isWhole reports whether a part stands alone between dots, or between a dot and an end.
func (t *HostnameTemplate) isWhole(i int) bool {
	left := i == 0 || strings.HasSuffix(t.parts[i-1].text, ".")
	right := i == len(t.parts)-1 || strings.HasPrefix(t.parts[i+1].text, ".")
	return left && right
}

// Namespaced reports whether each name contains the whole namespace as one part.
func (t *HostnameTemplate) Namespaced() bool { return t.namespace >= 0 }

// Render returns the name of a service. A property that is empty, or cannot be in a host name, is an error that names
// it.
func (t *HostnameTemplate) Render(r *Resource) (string, error) {
	var out strings.Builder
	for i := range t.parts {
		p := &t.parts[i]
		if p.text != "" {
			out.WriteString(p.text)
			continue
		}
		name, value := p.of(r)
		switch {
		case value == "":
			return "", fmt.Errorf("%s is empty", name)
		case !dnsSubdomain.MatchString(value):
			return "", fmt.Errorf("%s is %q, which cannot be in a host name", name, shorten(value))
		}
		out.WriteString(value)
	}
	return out.String(), checkHostname(out.String())
}

func hostnameVariable(r *Resource, name string) string {
	switch name {
	case "DisplayName":
		return r.DisplayName()
	case "Name":
		return r.Name
	case "Namespace":
		return r.HomeNamespace()
	case "Mesh":
		return r.Mesh
	case "Zone":
		return r.Zone()
	}
	return ""
}

// checkHostname checks that a name has at least two parts and cannot be mistaken for an address. A name of one part,
// such as localhost, means something else on each machine.
func checkHostname(name string) error {
	switch {
	case !isSubdomain(name):
		return fmt.Errorf("%q is not a DNS name", shorten(name))
	case !strings.Contains(name, "."):
		return fmt.Errorf("%q has one part: want at least two, such as name.mesh.local", shorten(name))
	case name[strings.LastIndexByte(name, '.')+1:] == "localhost":
		return fmt.Errorf("%q means the machine itself", shorten(name))
	case looksNumeric(name[strings.LastIndexByte(name, '.')+1:]):
		return fmt.Errorf("%q ends like an address", shorten(name))
	}
	for _, part := range strings.Split(name, ".") {
		if len(part) > MaxShortNameBytes {
			return fmt.Errorf("the part %q is longer than %d bytes", shorten(part), MaxShortNameBytes)
		}
	}
	return nil
}

// DefaultHostnameGenerators returns the generators of a new server: Kuma's of the same names, and two for services in
// namespaces. The global's are for services of other zones, a zone's for its own.
func DefaultHostnameGenerators(home Home) map[string]HostnameGenerator {
	out := map[string]HostnameGenerator{}
	add := func(name, template string, kind Type, labels map[string]string) {
		g := HostnameGenerator{Template: template}
		selector := &LabelSelector{MatchLabels: labels}
		switch kind {
		case TypeMeshService:
			g.Selector.MeshService = selector
		case TypeMeshExternalService:
			g.Selector.MeshExternalService = selector
		default:
			g.Selector.MeshMultiZoneService = selector
		}
		out[name] = g
	}
	synced := func(labels ...string) map[string]string { return labelled(LabelOrigin, OriginGlobal, labels...) }
	local := map[string]string{LabelOrigin: OriginZone}
	if home.Zone == "" || home.Alone {
		add("synced-mesh-multi-zone-service", "{{ .DisplayName }}.mzsvc.mesh.local", TypeMeshMultiZoneService, synced())
	}
	if home.Zone == "" {
		add("synced-mesh-external-service", "{{ .DisplayName }}.extsvc.mesh.local", TypeMeshExternalService, synced())
		add("synced-universal-mesh-service", "{{ .DisplayName }}.svc.{{ .Zone }}.mesh.local", TypeMeshService,
			synced(LabelEnv, EnvUniversal))
		add("synced-namespaced-mesh-service", "{{ .DisplayName }}.{{ .Namespace }}.svc.{{ .Zone }}.mesh.local",
			TypeMeshService, synced(LabelEnv, EnvUniversal))
		add("synced-kube-mesh-service", "{{ .DisplayName }}.{{ .Namespace }}.svc.{{ .Zone }}.mesh.local", TypeMeshService,
			synced(LabelEnv, envKubernetes, LabelHeadless, "false"))
		add("synced-headless-kube-mesh-service", `{{ label "statefulset.kubernetes.io/pod-name" }}.{{ label "`+
			LabelServiceName+`" }}.{{ .Namespace }}.svc.{{ .Zone }}.mesh.local`, TypeMeshService,
			synced(LabelEnv, envKubernetes, LabelHeadless, "true"))
		return out
	}
	add("local-universal-mesh-service", "{{ .DisplayName }}.svc.mesh.local", TypeMeshService, local)
	add("local-namespaced-mesh-service", "{{ .DisplayName }}.{{ .Namespace }}.svc.mesh.local", TypeMeshService, local)
	add("local-mesh-external-service", "{{ .DisplayName }}.extsvc.mesh.local", TypeMeshExternalService, local)
	return out
}

// Labels and values of services that Kubernetes zones create.
const (
	envKubernetes = "kubernetes"
	// LabelHeadless reports whether the name of a MeshService's Service resolves to its pods.
	LabelHeadless = "k8s.kuma.io/is-headless-service"
	// LabelServiceName names the Service that a MeshService comes from.
	LabelServiceName = "k8s.kuma.io/service-name"
)

func labelled(key, value string, more ...string) map[string]string {
	out := map[string]string{key: value}
	for i := 0; i+1 < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}
