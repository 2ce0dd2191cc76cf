package resources

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/causeway-mesh/causeway/printing"
)

// AppendUniversal appends r in Universal form as JSON without white space: type, mesh, name, namespace, times, labels,
// kri, then `spec` and `status`, or the spec's fields at the top level if the type's codec is Protobuf. This is the
// form of Kuma's HTTP API, with `namespace` added.
func AppendUniversal(dst []byte, r *Resource) []byte {
	o := objectWriter{dst: AppendMeta(append(dst, '{'), r, string(r.Type))}
	if r.Descriptor().Codec == JSON {
		o.raw("spec", r.Spec.JSON())
	} else if fields := bytes.TrimSuffix(bytes.TrimPrefix(r.Spec.JSON(), []byte("{")), []byte("}")); len(fields) > 0 {
		o.dst = append(append(o.dst, ','), fields...)
	}
	if len(r.Status) > 0 {
		o.raw("status", r.Status)
	}
	return append(o.dst, '}')
}

// AppendMeta appends the fields around the spec of r in Universal form, with the given type and without braces. dst
// must end in an opening brace.
func AppendMeta(dst []byte, r *Resource, shownType string) []byte {
	o := objectWriter{dst: dst}
	o.text("type", shownType)
	o.optional("mesh", r.Mesh)
	o.text("name", r.Name)
	o.optional("namespace", r.Namespace)
	o.time("creationTime", r.CreationTime)
	o.time("modificationTime", r.ModificationTime)
	o.labels("labels", r.Labels)
	o.optional("kri", KRIOf(r).String())
	return o.dst
}

// AppendKubernetes appends r in Kubernetes form as JSON without white space. Labels that Kubernetes rejects, because
// their value is too long or malformed, become annotations.
func AppendKubernetes(dst []byte, r *Resource) []byte {
	return AppendObject(dst, r, r.Namespace, nil, nil)
}

// AppendObject is AppendKubernetes for an object in another namespace, with extra labels and annotations.
func AppendObject(dst []byte, r *Resource, namespace string, labels, annotations map[string]string) []byte {
	o := objectWriter{dst: append(dst, '{')}
	o.text("apiVersion", apiVersionOf(r.Type))
	o.text("kind", string(r.Type))
	if r.Descriptor().Codec == Protobuf {
		o.optional("mesh", r.Mesh)
	}
	meta := objectWriter{dst: []byte("{")}
	meta.text("name", r.Name)
	meta.optional("namespace", namespace)
	if !r.CreationTime.IsZero() {
		meta.text("creationTimestamp", r.CreationTime.UTC().Format(time.RFC3339))
	}
	labels, annotations = objectLabels(r, labels, annotations)
	meta.labels("labels", labels)
	meta.labels("annotations", annotations)
	o.raw("metadata", append(meta.dst, '}'))
	o.raw("spec", r.Spec.JSON())
	if len(r.Status) > 0 {
		o.raw("status", r.Status)
	}
	return append(o.dst, '}')
}

// objectLabels returns the labels and annotations of r as an object, including the extra ones.
func objectLabels(r *Resource, labels, annotations map[string]string) (map[string]string, map[string]string) {
	outside, inside := maps.Clone(annotations), maps.Clone(labels)
	if inside == nil {
		inside = make(map[string]string, len(r.Labels)+1)
	}
	if r.Mesh != "" {
		inside[LabelMesh] = r.Mesh
	}
	for key, value := range r.Labels {
		switch {
		case key == LabelMesh && r.Mesh != "":
		case IsLabel(key, value):
			inside[key] = value
		default:
			if outside == nil {
				outside = map[string]string{}
			}
			outside[key] = value
		}
	}
	return inside, outside
}

// objectWriter appends the members of one JSON object.
type objectWriter struct {
	dst []byte
}

func (o *objectWriter) key(name string) {
	if o.dst[len(o.dst)-1] != '{' {
		o.dst = append(o.dst, ',')
	}
	o.dst = append(appendString(o.dst, name), ':')
}

func (o *objectWriter) text(name, value string) {
	o.key(name)
	o.dst = appendString(o.dst, value)
}

func (o *objectWriter) optional(name, value string) {
	if value != "" {
		o.text(name, value)
	}
}

// time omits the zero time, which a resource has before it is stored.
func (o *objectWriter) time(name string, t time.Time) {
	if t.IsZero() {
		return
	}
	o.key(name)
	o.dst = append(o.dst, '"')
	o.dst = append(t.AppendFormat(o.dst, time.RFC3339Nano), '"')
}

func (o *objectWriter) raw(name string, value []byte) {
	o.key(name)
	o.dst = append(o.dst, value...)
}

func (o *objectWriter) labels(name string, labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	o.key(name)
	inner := objectWriter{dst: append(o.dst, '{')}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		inner.text(k, labels[k])
	}
	o.dst = append(inner.dst, '}')
}

// EncodeYAML converts JSON, for example from AppendUniversal, to one YAML document. Members keep their order.
func EncodeYAML(raw []byte) ([]byte, error) {
	docs, err := parseJSON(raw)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	for _, doc := range docs {
		if err := enc.Encode(doc.yaml()); err != nil {
			return nil, err
		}
	}
	err = enc.Close()
	return printing.YAML(out.Bytes()), err
}

// yamlString quotes text that contains unprintable characters, so that YAML escapes them.
func yamlString(text string) *yaml.Node {
	y := &yaml.Node{}
	if y.SetString(text); !printing.Safe(text) {
		y.Style = yaml.DoubleQuotedStyle
	}
	return y
}

// yaml returns n as a node of the YAML package, which quotes strings that YAML would otherwise read as another kind.
func (n *node) yaml() *yaml.Node {
	switch n.kind {
	case nullNode:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	case boolNode:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: n.text}
	case numberNode:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: n.text}
	case stringNode:
		return yamlString(n.text)
	case arrayNode:
		y := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range n.items {
			y.Content = append(y.Content, item.yaml())
		}
		return y
	default:
		y := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, f := range n.fields {
			key := yamlString(f.name)
			y.Content = append(y.Content, key, f.value.yaml())
		}
		return y
	}
}

// Indent returns JSON as the HTTP API shows it: one space per level, and a line break at the end.
func Indent(raw []byte) []byte {
	var out bytes.Buffer
	out.Grow(len(raw) * 2)
	if json.Indent(&out, raw, "", " ") != nil {
		return raw
	}
	out.WriteByte('\n')
	return out.Bytes()
}
