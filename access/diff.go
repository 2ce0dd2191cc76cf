package access

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// ResourceChange is what became of one resource.
type ResourceChange struct {
	Type      string `json:"type"`
	Mesh      string `json:"mesh,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Result is created, updated or deleted.
	Result string        `json:"result"`
	Diff   []FieldChange `json:"diff,omitempty"`
	// Cut: there is more to the difference than the line may hold.
	Cut bool `json:"cut,omitempty"`
}

// FieldChange is one field whose value changed. From is absent for a new field, To for one that is gone. Values that may be
// secret are left out: then Hidden is set.
type FieldChange struct {
	Path   string          `json:"path"`
	From   json.RawMessage `json:"from,omitempty"`
	To     json.RawMessage `json:"to,omitempty"`
	Hidden bool            `json:"hidden,omitempty"`
}

const (
	// maxDiffFields bounds the fields of all differences of one line, maxDiffValue each value, in bytes.
	maxDiffFields = 200
	maxDiffValue  = 512
)

// Changes tells what a commit did. Of very large ones it tells all names and the first fields.
func Changes(commit *store.Commit) []ResourceChange {
	left := maxDiffFields
	out := make([]ResourceChange, 0, len(commit.Changes))
	for _, c := range commit.Changes {
		key := c.Key()
		change := ResourceChange{Type: string(key.Type), Mesh: key.Mesh, Namespace: key.Namespace, Name: key.Name, Result: "updated"}
		switch {
		case c.Old == nil:
			change.Result = "created"
		case c.New == nil:
			change.Result = "deleted"
		}
		d := differ{left: left}
		d.compare("labels", labelsOf(c.Old), labelsOf(c.New))
		d.compare("spec", specOf(c.Old), specOf(c.New))
		left, change.Diff, change.Cut = d.left, d.fields, d.cut
		out = append(out, change)
	}
	return out
}

func labelsOf(r *resources.Resource) any {
	if r == nil {
		return nil
	}
	labels := make(map[string]any, len(r.Labels))
	for k, v := range r.Labels {
		labels[k] = v
	}
	return labels
}

func specOf(r *resources.Resource) any {
	if r == nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(r.Spec.JSON()))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	return v
}

// differ collects the fields in which two values differ.
type differ struct {
	fields []FieldChange
	left   int
	cut    bool
}

func (d *differ) compare(path string, from, to any) {
	switch a := from.(type) {
	case map[string]any:
		if b, ok := to.(map[string]any); ok {
			d.objects(path, a, b)
			return
		}
	case []any:
		if b, ok := to.([]any); ok && len(a) == len(b) {
			for i := range a {
				d.compare(fmt.Sprintf("%s[%d]", path, i), a[i], b[i])
			}
			return
		}
	}
	d.add(path, from, to)
}

func (d *differ) objects(path string, a, b map[string]any) {
	names := map[string]bool{}
	for name := range a {
		names[name] = true
	}
	for name := range b {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		d.compare(path+"."+name, a[name], b[name])
	}
}

func (d *differ) add(path string, from, to any) {
	was, is := encode(hide(from)), encode(hide(to))
	hidden := secretField(path[strings.LastIndexByte(path, '.')+1:])
	if string(encode(from)) == string(encode(to)) {
		return
	}
	if d.left == 0 {
		d.cut = true
		return
	}
	d.left--
	c := FieldChange{Path: path, Hidden: hidden}
	if !hidden {
		c.From, c.To = d.short(was), d.short(is)
	}
	d.fields = append(d.fields, c)
}

// short keeps a value, or says how long it is.
func (d *differ) short(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxDiffValue {
		return raw
	}
	d.cut = true
	return encode(fmt.Sprintf("(%d bytes)", len(raw)))
}

func encode(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return nil
	}
	return bytes.TrimRight(out.Bytes(), "\n")
}

// hide replaces what may be secret inside of a value.
func hide(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, inner := range v {
			if secretField(name) {
				out[name] = "(hidden)"
				continue
			}
			out[name] = hide(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = hide(v[i])
		}
		return out
	}
	return v
}

// secretWords are parts of the names of fields that may hold secrets, in the specs of this and of other control planes.
var secretWords = []string{"secret", "password", "passphrase", "token", "privatekey", "clientkey", "inline", "credential"}

func secretField(name string) bool {
	name = strings.ToLower(name)
	return name == "key" || slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}
