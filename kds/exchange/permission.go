package exchange

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/causeway-mesh/causeway/resources"
)

// Permissions between peers that do not know the same fields. A peer drops JSON fields that it does not know, so a
// permission is never sent in a form that the peer would read as more permissive, and one that arrives with fields
// unknown to us is refused.

const (
	fieldSpiffeID     = "spiffeID" // Kuma's spelling
	fieldSpiffeIDOurs = "spiffeId"
)

// object is one JSON object whose values are decoded on demand.
type object = map[string]json.RawMessage

// plainPolicy returns spec in the form that every peer knows: the short form `default` as one rule, the identity's
// field in Kuma's spelling and, in permissions, no path and no method; in routes, prefixes of paths without a slash at the
// end. It returns spec itself if nothing changes, and
// errNoForm if the policy has no such form.
func plainPolicy(d *resources.Descriptor, spec []byte) ([]byte, error) {
	switch d.Type {
	case resources.TypeMeshHTTPRoute:
		return plainPaths(spec)
	case resources.TypeMeshRetry:
		return plainRetries(spec)
	}
	if d.Policy == nil || !d.Policy.Rules {
		return spec, nil
	}
	if d.Type == resources.TypeMeshTrafficPermission && plainAlready(spec) {
		return spec, nil
	}
	return rewritePlain(d, spec)
}

// rewritePlain does plainPolicy's work.
func rewritePlain(d *resources.Descriptor, spec []byte) ([]byte, error) {
	var policy object
	if err := json.Unmarshal(spec, &policy); err != nil {
		return nil, err
	}
	rules, err := plainRules(d, policy)
	if err != nil {
		return nil, err
	}
	if rules == nil {
		if d.Type == resources.TypeMeshTrafficPermission && policy["from"] == nil {
			return nil, fmt.Errorf("%w: no entry is left that the peer can judge", errNoForm)
		}
		return spec, nil
	}
	delete(policy, "default")
	policy["rules"], err = marshal(rules)
	if err != nil {
		return nil, err
	}
	out, err := marshal(policy)
	if err != nil || bytes.Equal(out, spec) {
		return spec, err
	}
	return out, nil
}

// plainAlready reports whether a permission has rules only and nothing in them to rewrite. Most are like that, and one
// pass to see it costs less than decoding their entries. It returns false if in doubt.
func plainAlready(spec []byte) bool {
	var policy struct {
		Default, From present
		Rules         []struct {
			Matches present
			Default map[string][]struct {
				Theirs struct{ Value string } `json:"spiffeID"`
				Ours   present                `json:"spiffeId"`
				Path   present
				Method present
			}
		}
	}
	if !saidAsRead(spec) || json.Unmarshal(spec, &policy) != nil || bool(policy.Default || policy.From) {
		return false
	}
	for _, rule := range policy.Rules {
		if bool(rule.Matches) || len(rule.Default) == 0 {
			return false
		}
		for _, entries := range rule.Default {
			for _, e := range entries {
				if bool(e.Ours || e.Path || e.Method) || strings.HasSuffix(e.Theirs.Value, "/") {
					return false
				}
			}
			if len(entries) == 0 {
				return false
			}
		}
	}
	return len(policy.Rules) > 0
}

// saidAsRead reports whether the fields that were read as rules and default are spelled so: encoding/json ignores case,
// a peer does not. It compares plain text, so it returns false for escapes and for letters whose case folding is not
// ASCII.
func saidAsRead(spec []byte) bool {
	for _, b := range spec {
		if b == '\\' || b >= utf8.RuneSelf {
			return false
		}
	}
	lower := bytes.ToLower(spec)
	for _, field := range [][]byte{[]byte(`"rules"`), []byte(`"default"`)} {
		if bytes.Count(lower, field) != bytes.Count(spec, field) {
			return false
		}
	}
	return true
}

// present is true for a field that is present, whatever its value.
type present bool

// UnmarshalJSON implements json.Unmarshaler.
func (p *present) UnmarshalJSON([]byte) error {
	*p = true
	return nil
}

// plainRules returns the policy's rules in the plain form, or nil if there are none or none is left.
func plainRules(d *resources.Descriptor, policy object) ([]object, error) {
	var rules []object
	switch {
	case policy["rules"] != nil:
		if err := json.Unmarshal(policy["rules"], &rules); err != nil {
			return nil, err
		}
	case policy["default"] != nil:
		rules = []object{{"default": policy["default"]}}
	}
	var plain []object
	for _, rule := range rules {
		if err := plainMatches(rule); err != nil {
			return nil, err
		}
		if d.Type == resources.TypeMeshTrafficPermission {
			conf, err := plainPermission(rule["default"])
			if err != nil {
				return nil, err
			}
			if conf == nil {
				continue
			}
			rule["default"] = conf
		}
		plain = append(plain, rule)
	}
	return plain, nil
}

func plainMatches(rule object) error {
	if rule["matches"] == nil {
		return nil
	}
	var matches []object
	if err := json.Unmarshal(rule["matches"], &matches); err != nil {
		return err
	}
	for _, m := range matches {
		respell(m)
	}
	var err error
	rule["matches"], err = marshal(matches)
	return err
}

// plainPermission rewrites one rule's conf; nil means that nothing of it is left. An allowing entry that needs HTTP, or
// whose identity the peer does not take, is dropped; a denying one denies on what is left of its identity alone, which
// denies more.
func plainPermission(raw json.RawMessage) (json.RawMessage, error) {
	var lists map[string][]object
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &lists); err != nil {
			return nil, err
		}
	}
	out := map[string][]object{}
	for list, entries := range lists {
		for _, entry := range entries {
			respell(entry)
			needsHTTP := entry["path"] != nil || entry["method"] != nil
			if needsHTTP && list != "deny" {
				continue
			}
			fits, err := plainIdentity(entry, list == "deny")
			if err != nil {
				return nil, err
			}
			if !fits {
				continue
			}
			delete(entry, "path")
			delete(entry, "method")
			if needsHTTP && len(entry) == 0 {
				return nil, fmt.Errorf("%w: it denies everyone on a path or method", errNoForm)
			}
			out[list] = append(out[list], entry)
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return marshal(out)
}

// plainIdentity rewrites an identity that ends with a slash, such as the prefix of a whole trust domain, which Kuma does
// not take for one. Without the slash the prefix covers more: that may deny, but not allow. It reports whether the entry
// can be sent.
func plainIdentity(entry object, denies bool) (fits bool, err error) {
	var id resources.SpiffeIDMatch
	if entry[fieldSpiffeID] == nil || json.Unmarshal(entry[fieldSpiffeID], &id) != nil ||
		!strings.HasSuffix(id.Value, "/") {
		return true, nil
	}
	if !denies {
		return false, nil
	}
	if id.Value = strings.TrimRight(id.Value, "/"); id.Value == "spiffe:" {
		return false, fmt.Errorf("%w: it denies every identity by the prefix %s", errNoForm, resources.EveryIdentity)
	}
	entry[fieldSpiffeID], err = marshal(&id)
	return true, err
}

func respell(entry object) {
	if v, ok := entry[fieldSpiffeIDOurs]; ok {
		delete(entry, fieldSpiffeIDOurs)
		entry[fieldSpiffeID] = v
	}
}

// marshal encodes JSON as specs have it: sorted keys, no HTML escapes, no newline.
func marshal(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
