package resources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Sensitive says where specs of a type hold secrets. Every server treats all of them by one rule: sealed at rest, shown as a hash,
// opened only for whoever has to use them.
type Sensitive struct {
	// Sources are paths of objects that say where a value comes from, written as Field.Path is: each text in them is a secret,
	// but for those that name a place instead of holding a value (sourceNames).
	Sources []string
}

// anywhere is the rule of a type that has places for secrets: sources are those that only their place gives away. Besides, a secret is
// what stands under one of secretNames, what a header of secretHeaders is set to, and what holds a private key in PEM form.
func anywhere(sources ...string) *Sensitive { return &Sensitive{Sources: sources} }

// secretNames are the names, in lower case and without dashes and underscores, of fields whose value is a secret wherever they stand.
var secretNames = []string{
	"password", "passphrase", "privatekey", "clientkey", "secretkey", "sharedkey", "signingkey", "apikey", "accesskey", "tlskey",
	"token", "apitoken", "accesstoken", "authtoken", "bearertoken", "clientsecret", "sharedsecret", "credential", "credentials",
}

// sourceNames are fields of a source that name a place.
var sourceNames = []string{"secret", "secretref", "file", "path", "envvar", "name", "kind", "type"}

// inlineNames are fields of a source that hold the value itself.
var inlineNames = []string{"inline", "inlineString", "insecureInline"}

// secretHeaders are parts of the names of headers that carry credentials.
var secretHeaders = []string{"authorization", "cookie", "token", "secret", "password", "api-key", "apikey", "credential"}

const (
	privateKeyPEM  = "PRIVATE KEY-----"
	headerModifier = "eaderModifier"
)

// hints are parts of every text that has a secret in it. Most policies have none of them, and are not looked at further.
var hints = []string{"key", "Key", "KEY", "assword", "assphrase", "ecret", "oken", "redential", "PASS", "TOKEN", "SECRET", "CREDENTIAL", headerModifier, sealedMark, hiddenMark, shownMark}

func (s *Sensitive) hinted(raw []byte) bool {
	return len(s.Sources) > 0 || slices.ContainsFunc(hints, func(h string) bool { return bytes.Contains(raw, []byte(h)) })
}

// EditSecrets returns r's spec with each secret in it replaced by what f returns for it; the same spec where f changes nothing, which
// costs next to nothing where there are none. path says where the value stands, as an index would. Errors are f's, and those of
// a spec that is no JSON object.
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
	if err := e.object(place{}, spec, false); err != nil {
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
	edited, err := NewSpec(r.Type, out.Bytes())
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

// place is where a value stands: path with indexes, pattern without.
type place struct{ path, pattern string }

func (p place) member(name string) place {
	return place{strings.TrimPrefix(p.path+"."+name, "."), strings.TrimPrefix(p.pattern+"."+name, ".")}
}

func (p place) item(i int) place { return place{fmt.Sprintf("%s[%d]", p.path, i), p.pattern + "[]"} }

// object walks the members of an object; secret: it is a source, or has a secret's name.
func (e *secretEditor) object(at place, o map[string]any, secret bool) error {
	header, _ := o["name"].(string)
	for name, v := range o {
		here := at.member(name)
		is := secret && !slices.Contains(sourceNames, strings.ToLower(name)) || named(name, v) || slices.Contains(e.sources, here.pattern)
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

func (e *secretEditor) value(at place, v any, secret bool) (any, error) {
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

// named reports whether a field's name says that it holds a secret. Of `key`, which is the name of much, it does where it is a source.
func named(name string, v any) bool {
	plain := withoutDashes.Replace(strings.ToLower(name))
	if plain != "key" {
		return slices.Contains(secretNames, plain)
	}
	source, _ := v.(map[string]any)
	return slices.ContainsFunc(inlineNames, func(inline string) bool { return source[inline] != nil })
}

// inHeaders: an item of the lists that set and add headers.
func inHeaders(pattern string) bool {
	return strings.HasSuffix(pattern, headerModifier+".set[]") || strings.HasSuffix(pattern, headerModifier+".add[]")
}

func secretHeader(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretHeaders, func(part string) bool { return strings.Contains(name, part) })
}
