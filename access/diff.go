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

// ResourceChange is the change of one resource.
type ResourceChange struct {
	Type      string `json:"type"`
	Mesh      string `json:"mesh,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Result is created, updated or deleted; update or delete if the change only began.
	Result string        `json:"result"`
	Diff   []FieldChange `json:"diff,omitempty"`
	// Cut means that the difference exceeds the limits of a line.
	Cut bool `json:"cut,omitempty"`
}

// FieldChange is one field whose value changed. From is absent for a new field, To for a removed one. Values that may
// be secret are omitted, and Hidden is set.
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

// Changes returns what a commit changed. For very large commits it returns all names, but only the first fields.
func Changes(commit *store.Commit) []ResourceChange {
	left := maxDiffFields
	out := make([]ResourceChange, 0, len(commit.Changes))
	for _, c := range commit.Changes {
		key := c.Key()
		change := ResourceChange{Type: string(key.Type), Mesh: key.Mesh, Namespace: key.Namespace, Name: key.Name,
			Result: "updated"}
		switch {
		case c.Old == nil:
			change.Result = "created"
		case c.New == nil:
			change.Result = "deleted"
		}
		d := differ{left: left}
		if c.Old == nil || c.New == nil || !maps.Equal(c.Old.Labels, c.New.Labels) {
			d.compare("labels", labelsOf(c.Old), labelsOf(c.New))
		}
		d.compare("spec", specOf(c.Old), specOf(c.New))
		left, change.Diff, change.Cut = d.left, d.fields, d.cut
		out = append(out, change)
	}
	return out
}

func labelsOf(r *resources.Resource) json.RawMessage {
	if r == nil {
		return nil
	}
	if len(r.Labels) == 0 {
		return json.RawMessage("{}")
	}
	return encode(r.Labels)
}

func specOf(r *resources.Resource) json.RawMessage {
	if r == nil {
		return nil
	}
	return r.Spec.JSON()
}

// differ collects the fields in which two canonical JSON values differ. It compares equal parts as text, so that a
// change of one field costs little, however much surrounds it.
type differ struct {
	fields []FieldChange
	left   int
	cut    bool
}

// compare uses nil for an absent value.
func (d *differ) compare(path string, from, to json.RawMessage) {
	switch {
	case bytes.Equal(from, to):
	case secretField(lastName(path)):
		d.add(path, from, to)
	case isObject(from) && isObject(to):
		d.objects(path, from[1:], to[1:])
	case isArray(from) && isArray(to) && length(from) == length(to):
		d.arrays(path, from[1:], to[1:])
	default:
		d.add(path, from, to)
	}
}

// arrays walks what is left of both, which have as many elements.
func (d *differ) arrays(path string, from, to json.RawMessage) {
	a, from, more := firstElement(from)
	b, to, _ := firstElement(to)
	for i := 0; more; i++ {
		if !bytes.Equal(a, b) {
			d.compare(fmt.Sprintf("%s[%d]", path, i), a, b)
		}
		a, from, more = firstElement(from)
		b, to, _ = firstElement(to)
	}
}

// objects walks what is left of both, in the order of their names.
func (d *differ) objects(path string, from, to json.RawMessage) {
	a, from, moreA := firstMember(from)
	b, to, moreB := firstMember(to)
	for moreA || moreB {
		switch order := bytes.Compare(a.name, b.name); {
		case !moreB || moreA && order < 0:
			d.compare(path+"."+string(a.name), a.value, nil)
			a, from, moreA = firstMember(from)
		case !moreA || order > 0:
			d.compare(path+"."+string(b.name), nil, b.value)
			b, to, moreB = firstMember(to)
		default:
			if !bytes.Equal(a.value, b.value) {
				d.compare(path+"."+string(a.name), a.value, b.value)
			}
			a, from, moreA = firstMember(from)
			b, to, moreB = firstMember(to)
		}
	}
}

func (d *differ) add(path string, from, to json.RawMessage) {
	from, to = present(from), present(to)
	if from == nil && to == nil {
		return
	}
	if d.left == 0 {
		d.cut = true
		return
	}
	d.left--
	c := FieldChange{Path: path, Hidden: secretField(lastName(path))}
	if !c.Hidden {
		c.From, c.To = d.short(hidden(from)), d.short(hidden(to))
	}
	d.fields = append(d.fields, c)
}

// present returns nil for null, which counts as absent.
func present(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// hidden returns a canonical value without parts that may be secret. Most values contain no secret and stay as they
// are.
func hidden(raw json.RawMessage) json.RawMessage {
	text := strings.ToLower(string(raw))
	if !strings.Contains(text, `"key"`) && !hasSecretWord(text) {
		return raw
	}
	return encode(hide(decode(raw)))
}

func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// short returns a value, or its length in place of a long one.
func (d *differ) short(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxDiffValue {
		return raw
	}
	d.cut = true
	return encode(fmt.Sprintf("(%d bytes)", len(raw)))
}

func decode(raw json.RawMessage) (v any) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return nil
	}
	return v
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

// hide replaces parts of a value that may be secret.
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

// secretWords lists parts of the names of fields that may hold secrets, in specs of this and other control planes.
var secretWords = []string{"secret", "password", "passphrase", "token", "privatekey", "clientkey", "inline",
	"credential"}

func secretField(name string) bool {
	name = strings.ToLower(name)
	return name == "key" || hasSecretWord(name)
}

// hasSecretWord expects lower-case text.
func hasSecretWord(text string) bool {
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(text, word) })
}
