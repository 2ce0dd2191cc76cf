package exchange

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// permissionFields lists the fields that each object of a permission may have.
var permissionFields = struct {
	spec, targetRef, rule, conf, entry, match, from, fromConf []string
}{
	spec:      []string{"targetRef", "rules", "from", "default"},
	targetRef: []string{"kind", "name", "namespace", "labels", "tags", "mesh", "proxyTypes", "sectionName"},
	rule:      []string{"default"},
	conf:      []string{"deny", "allowWithShadowDeny", "allow"},
	entry:     []string{fieldSpiffeID, fieldSpiffeIDOurs, "sni", "path", "method"},
	match:     []string{"type", "value"},
	from:      []string{"targetRef", "default"},
	fromConf:  []string{"action"},
}

// checkPermissionFields refuses a permission with an unknown field: dropping it could allow more than its author meant.
// Field names are case-sensitive. It decodes the permission once: each policy that arrives is checked.
func checkPermissionFields(spec []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(spec))
	decoder.UseNumber()
	var read any
	if err := decoder.Decode(&read); err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	policy, err := known(read, "spec", permissionFields.spec)
	if err != nil {
		return err
	}
	if _, err := known(policy["targetRef"], "spec.targetRef", permissionFields.targetRef); err != nil {
		return err
	}
	if err := checkPermissionConf(policy["default"], "spec.default"); err != nil {
		return err
	}
	if err := each(policy["rules"], "spec.rules", func(item any, at string) error {
		rule, err := known(item, at, permissionFields.rule)
		if err != nil {
			return err
		}
		return checkPermissionConf(rule["default"], at+".default")
	}); err != nil {
		return err
	}
	return each(policy["from"], "spec.from", func(item any, at string) error {
		from, err := known(item, at, permissionFields.from)
		if err != nil {
			return err
		}
		if _, err := known(from["targetRef"], at+".targetRef", permissionFields.targetRef); err != nil {
			return err
		}
		_, err = known(from["default"], at+".default", permissionFields.fromConf)
		return err
	})
}

func checkPermissionConf(v any, at string) error {
	conf, err := known(v, at, permissionFields.conf)
	if err != nil {
		return err
	}
	for _, list := range permissionFields.conf {
		if err := each(conf[list], at+"."+list, checkPermissionEntry); err != nil {
			return err
		}
	}
	return nil
}

func checkPermissionEntry(v any, at string) error {
	entry, err := known(v, at, permissionFields.entry)
	if err != nil {
		return err
	}
	for _, field := range [...]string{fieldSpiffeID, fieldSpiffeIDOurs, "sni", "path"} {
		if _, err := known(entry[field], at+"."+field, permissionFields.match); err != nil {
			return err
		}
	}
	return nil
}

// known returns an object that may have these fields only; nil for one that is absent or null.
func known(v any, at string, fields []string) (map[string]any, error) {
	if v == nil {
		return nil, nil
	}
	o, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: want an object", at)
	}
	for field := range o {
		if !slices.Contains(fields, field) {
			return nil, fmt.Errorf("%s.%s: this field of a permission is not known here, and dropping it could allow more than was meant", at, field)
		}
	}
	return o, nil
}

// each calls check for every item of a list that may be absent.
func each(v any, at string, check func(item any, at string) error) error {
	if v == nil {
		return nil
	}
	items, ok := v.([]any)
	if !ok {
		return fmt.Errorf("%s: want a list", at)
	}
	for i, item := range items {
		if err := check(item, fmt.Sprintf("%s[%d]", at, i)); err != nil {
			return err
		}
	}
	return nil
}
