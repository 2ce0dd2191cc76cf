package resources

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// confField is a tree of fields. A field without children includes everything below it.
type confField map[string]confField

// fieldsOf parses lines of paths.
func fieldsOf(lines ...string) confField {
	root := confField{}
	for _, path := range strings.Split(strings.Join(lines, "\n"), "\n") {
		at := root
		for _, name := range strings.Split(strings.ReplaceAll(path, "[]", ""), ".") {
			if name == "*" {
				break
			}
			if at[name] == nil {
				at[name] = confField{}
			}
			at = at[name]
		}
	}
	return root
}

// ConfFields lists the fields of a type's confs that configure proxies in this version, in order, such as
// `http.numRetries`. It is empty for types whose confs have no other fields.
func ConfFields(t Type) []string { return confFields[t].paths("") }

func (f confField) paths(at string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if below := f[name].paths(at + name + "."); len(below) > 0 {
			out = append(out, below...)
		} else {
			out = append(out, at+name)
		}
	}
	return out
}

// leftOut holds the fields of a conf that have no effect on proxies, and whether the others have one.
type leftOut struct {
	parts []string
	taken bool
	// of is the type of the policy.
	of Type
	// typed means that the conf can only contain the fields of its type, so none is misspelt.
	typed bool
}

// look walks the JSON of a conf. Field names are case-insensitive, as they are in the decoder. path is that of the value
// in its conf, without indexes.
func (o *leftOut) look(value any, known confField, at *fieldPath, path string) {
	switch v := value.(type) {
	case []any:
		here := at.item(0)
		for i, item := range v {
			here.index = i
			o.look(item, known, here, path)
		}
		return
	case map[string]any:
		if len(known) == 0 {
			break
		}
		var room [fewNames]string
		here := at.field("")
		for _, name := range sortedNames(room[:0], v) {
			path := strings.TrimPrefix(path+"."+name, ".")
			here.name = name
			if below, ok := known.of(name); ok {
				if name != "type" { // it only selects the type of the other fields
					o.look(v[name], below, here, path)
				}
			} else {
				text := fmt.Sprintf("%s: this version does not configure proxies by it%s", here, reasonOf(o.of, path))
				if !o.typed {
					text += Suggestion(name, slices.Collect(maps.Keys(known)))
				}
				o.parts = append(o.parts, text)
			}
		}
		return
	}
	o.taken = true
}

// fewNames is how many names an object of a conf has at most, in most cases.
const fewNames = 16

// sortedNames appends the names of an object, in order.
func sortedNames(names []string, object map[string]any) []string {
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (f confField) of(name string) (confField, bool) {
	if below, ok := f[name]; ok {
		return below, true
	}
	for known, below := range f {
		if strings.EqualFold(known, name) {
			return below, true
		}
	}
	return nil, false
}

// leftOutOfTo checks the items of `to` in a policy whose type configures proxies.
func leftOutOfTo(t Type, items []PolicyTo, onGateway bool) (out leftOut) {
	known := confFields[t]
	out.of = t
	for i := range items {
		at, conf := top("spec").field("to").item(i), items[i].Default
		if len(items[i].Hostnames) > 0 && !(onGateway && t == TypeMeshHTTPRoute) {
			out.parts = append(out.parts, fmt.Sprintf("%s: this version does not configure proxies by it: the rules hold for every host", at.field("hostnames")))
		}
		at = at.field("default")
		if len(items[i].Rules) > 0 {
			at, conf = top("spec").field("to").item(i).field("rules"), items[i].Rules
		}
		var value any
		if known == nil || json.Unmarshal(conf, &value) != nil || isEmpty(value) {
			out.taken = true // its shape has no other fields, or it is empty
			continue
		}
		out.look(value, known, at, "")
		checkValues(t, value, at, func(at *fieldPath, problem string) {
			out.parts = append(out.parts, fmt.Sprintf("%s: proxies are not configured by it: %s", at, problem))
		})
	}
	return out
}

// isEmpty reports whether value has no field that could lack an effect.
func isEmpty(value any) bool {
	fields, ok := value.(map[string]any)
	return ok && len(fields) == 0
}

// ReceivedFields is ConfFields for the confs of `from`, `rules` and `default`.
func ReceivedFields(t Type) []string { return receivedFields[t].paths("") }

// leftOutOfReceived checks the confs in one of the policy's lists for inbound traffic.
func leftOutOfReceived(t Type, p *Policy, list string) (out leftOut) {
	known := receivedFields[t]
	out.of = t
	_, out.typed = confTypes[confKey{t, "rule"}]
	look := func(conf json.RawMessage, at *fieldPath) {
		var value any
		if t == TypeMeshTLS {
			out.parts = append(out.parts, ciphersWithoutUse(conf, at)...)
		}
		if known == nil || json.Unmarshal(conf, &value) != nil || isEmpty(value) {
			out.taken = true
			return
		}
		out.look(value, known, at, "")
	}
	at := top("spec").field(list)
	switch list {
	case "from":
		for i := range p.From {
			if byTags := p.From[i].TargetRef.KindOrMesh() != KindMesh; byTags && t != TypeMeshTrafficPermission {
				out.parts = append(out.parts, fmt.Sprintf("%s: identities carry no tags, so it has no effect",
					at.item(i).field("targetRef")))
				continue
			}
			look(p.From[i].Default, at.item(i).field("default"))
		}
	case "rules":
		for i := range p.Rules {
			if t == TypeMeshAccessLog && len(p.Rules[i].Matches) > 0 {
				out.parts = append(out.parts, fmt.Sprintf("%s: proxies log everything that an inbound receives or nothing, so a rule with matches has no effect", at.item(i).field("matches")))
				continue
			}
			if t == TypeMeshCircuitBreaker && len(p.Rules[i].Matches) > 0 {
				out.parts = append(out.parts, fmt.Sprintf("%s: the limits apply to the application, not to a request, so a rule with matches has no effect", at.item(i).field("matches")))
				continue
			}
			if t == TypeMeshTLS && len(p.Rules[i].Matches) > 0 {
				out.parts = append(out.parts, fmt.Sprintf("%s: a connection is made before there is a request, so a rule with matches has no effect", at.item(i).field("matches")))
				continue
			}
			if len(p.Rules[i].Matches) > 0 {
				for _, name := range connectionLimitsByMatch(t, p.Rules[i].Default) {
					out.parts = append(out.parts, fmt.Sprintf("%s.%s: limits connections, which exist before any request that matches could select: write a rule without matches",
						at.item(i).field("default"), name))
				}
			}
			look(p.Rules[i].Default, at.item(i).field("default"))
		}
	default:
		look(p.Default, at)
	}
	return out
}
