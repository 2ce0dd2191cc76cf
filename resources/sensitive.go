package resources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Sensitive describes which values in specs of a type are secrets. Every server applies the same rule to them: sealed
// at rest, shown as a hash, opened only for their users.
type Sensitive struct {
	// Sources are the paths, as in Field.Path, of objects that give the source of a value. Each text in them is a
	// secret, except for texts that name a place instead of holding a value (sourceNames).
	Sources []string
}

// anywhere returns the rule of a type whose specs can hold secrets. sources are the paths that only their place
// identifies. In addition, these values are secrets: the values of fields in secretNames, the values of headers in
// secretHeaders, and texts that contain a private key in PEM form.
func anywhere(sources ...string) *Sensitive { return &Sensitive{Sources: sources} }

// secretNames are the names of fields whose value is always a secret, in lower case and without dashes and underscores.
var secretNames = []string{
	"password", "passphrase", "privatekey", "clientkey", "secretkey", "sharedkey", "signingkey", "apikey",
	"accesskey", "tlskey",
	"token", "apitoken", "accesstoken", "authtoken", "bearertoken", "clientsecret", "sharedsecret", "credential",
	"credentials",
}

// sourceNames are the fields of a source that name a place.
var sourceNames = []string{"secret", "secretref", "file", "path", "envvar", "name", "kind", "type"}

// inlineNames are the fields of a source that hold the value itself.
var inlineNames = []string{"inline", "inlineString", "insecureInline"}

// secretHeaders are substrings of the names of headers that carry credentials, with a hyphen for an underscore
// and one at the end.
var secretHeaders = []string{"authorization", "cookie", "token", "secret", "password", "passwd", "api-key", "apikey",
	"access-key", "auth-key", "private-key", "subscription-key", "credential", "session", "jwt", "x-auth-"}

const privateKeyPEM = "PRIVATE KEY-----"

// headerLists are the ends of the names of fields whose `set` and `add` are lists of headers.
var headerLists = []string{"eaderModifier", "eadersToAdd", ".headers"}

// hints are substrings, of which every text with a secret contains at least one. Most policies contain none and need no
// further check.
var hints = []string{"key", "Key", "KEY", "assword", "assphrase", "ecret", "oken", "redential", "PASS", "TOKEN",
	"SECRET", "CREDENTIAL", sealedMark, hiddenMark, shownMark}

// headerHint is in the name of every list of headers.
const headerHint = "eader"

// hinted expects canonical JSON, in which names and values are as they are, except for quotes and control characters.
func (s *Sensitive) hinted(raw []byte) bool {
	return slices.ContainsFunc(s.Sources, func(path string) bool { return bytes.Contains(raw, lastName(path)) }) ||
		slices.ContainsFunc(hints, func(h string) bool { return bytes.Contains(raw, []byte(h)) }) ||
		bytes.Contains(raw, []byte(headerHint)) && mayNameSecretHeader(raw)
}

// lastName returns the name of the field that a path ends with, in quotes, as in canonical JSON.
func lastName(path string) []byte {
	return []byte(`"` + strings.TrimSuffix(path[strings.LastIndexByte(path, '.')+1:], "[]") + `"`)
}

// mayNameSecretHeader reports whether secretHeader can be true for a text in raw. Most policies that set headers name none
// that carries a credential, and need not be decoded.
func mayNameSecretHeader(raw []byte) bool {
	lower := bytes.ToLower(raw)
	for i, c := range lower {
		if c == '_' {
			lower[i] = '-'
		}
	}
	return slices.ContainsFunc(secretHeaders, func(part string) bool {
		return bytes.Contains(lower, []byte(strings.TrimSuffix(part, "-"))) // the name may end there
	})
}

// EditSecrets returns r's spec with each secret replaced by the result of f. If f changes nothing, it returns the same
// spec; for a spec without secrets this costs almost nothing. path is the path of the value, with indexes. Errors come
// from f, or report a spec that is not a JSON object.
func EditSecrets(r *Resource, f func(path, value string) (string, error)) (*Spec, error) {
	d, ok := LookupStored(r.Type)
	if !ok || d.Sensitive == nil || !d.Sensitive.hinted(r.Spec.JSON()) {
		return r.Spec, nil
	}
	dec := json.NewDecoder(bytes.NewReader(r.Spec.JSON()))
	dec.UseNumber()
	var spec map[string]any
	if err := dec.Decode(&spec); err != nil {
		return nil, fmt.Errorf("%s: spec: %w", r.Key, err)
	}
	e := secretEditor{sources: d.Sensitive.Sources, edit: f}
	if err := e.object(valuePath{}, spec, false); err != nil {
		return nil, err
	}
	if !e.changed {
		return r.Spec, nil
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(spec); err != nil {
		return nil, err
	}
	edited, err := newSpec(d, out.Bytes())
	if err == nil {
		edited.strict = r.Spec.strict
	}
	return edited, err
}

// secretEditor walks one spec.
type secretEditor struct {
	sources []string
	edit    func(path, value string) (string, error)
	changed bool
}

// valuePath is the place of a value: path with indexes, pattern without.
type valuePath struct{ path, pattern string }

func (p valuePath) member(name string) valuePath {
	return valuePath{strings.TrimPrefix(p.path+"."+name, "."), strings.TrimPrefix(p.pattern+"."+name, ".")}
}

func (p valuePath) item(i int) valuePath {
	return valuePath{fmt.Sprintf("%s[%d]", p.path, i), p.pattern + "[]"}
}

// object walks the members of an object. secret means that the object is a source, or has the name of a secret.
func (e *secretEditor) object(at valuePath, o map[string]any, secret bool) error {
	header, _ := o["name"].(string)
	for name, v := range o {
		here := at.member(name)
		is := secret && !slices.Contains(sourceNames, strings.ToLower(name)) || named(name, v) ||
			slices.Contains(e.sources, here.pattern)
		if name == "value" && inHeaders(at.pattern) && secretHeader(header) {
			is = true
		}
		edited, err := e.value(here, v, is)
		if err != nil {
			return err
		}
		o[name] = edited
	}
	return nil
}

func (e *secretEditor) value(at valuePath, v any, secret bool) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		return v, e.object(at, v, secret)
	case []any:
		for i := range v {
			here := at.item(i)
			edited, err := e.value(here, v[i], secret || slices.Contains(e.sources, here.pattern))
			if err != nil {
				return nil, err
			}
			v[i] = edited
		}
	case string:
		if v == "" || !secret && !strings.Contains(v, privateKeyPEM) && !IsHidden(v) {
			return v, nil
		}
		edited, err := e.edit(at.path, v)
		e.changed = e.changed || edited != v
		return edited, err
	}
	return v, nil
}

var withoutDashes = strings.NewReplacer("-", "", "_", "")

// named reports whether the name of a field identifies a secret. A field named `key`, a common name, holds one only if
// its value is a source.
func named(name string, v any) bool {
	plain := withoutDashes.Replace(strings.ToLower(name))
	if plain != "key" {
		return slices.Contains(secretNames, plain)
	}
	source, _ := v.(map[string]any)
	return slices.ContainsFunc(inlineNames, func(inline string) bool { return source[inline] != nil })
}

// inHeaders reports whether pattern is an item of a list that sets or adds headers.
func inHeaders(pattern string) bool {
	list, ok := strings.CutSuffix(pattern, ".set[]")
	if !ok {
		list, ok = strings.CutSuffix(pattern, ".add[]")
	}
	return ok && slices.ContainsFunc(headerLists, func(end string) bool { return strings.HasSuffix(list, end) })
}

func secretHeader(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-") + "-"
	return slices.ContainsFunc(secretHeaders, func(part string) bool { return strings.Contains(name, part) })
}
