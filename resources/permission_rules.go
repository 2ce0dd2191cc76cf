package resources

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// PermissionRule is the conf of one effective rule of a MeshTrafficPermission. Err is the reason why the conf does not
// decode; then Conf is empty.
type PermissionRule struct {
	Conf PermissionConf
	Err  error
}

// PermissionRules returns the confs of the effective rules of r, a MeshTrafficPermission, in order. They are decoded
// once, strictly: a field that this version does not know may narrow an allow or widen a deny. The result is shared and
// must not be changed. It is nil for a spec that does not decode.
func PermissionRules(r *Resource) []PermissionRule {
	policy, err := SpecAs[Policy](r)
	if err != nil {
		return nil
	}
	r.Spec.permissionsOnce.Do(func() {
		rules := policy.EffectiveRules()
		out := make([]PermissionRule, len(rules))
		for i, rule := range rules {
			out[i].Conf, out[i].Err = decodePermission(rule.Default)
		}
		r.Spec.permissions = out
	})
	return r.Spec.permissions
}

func decodePermission(raw json.RawMessage) (PermissionConf, error) {
	var conf PermissionConf
	if len(raw) == 0 {
		return conf, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&conf); err != nil {
		return PermissionConf{}, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return PermissionConf{}, errors.New("more than one value")
	}
	return conf, nil
}
