package resources

import (
	"bytes"
	"encoding/json"
	"strconv"
	"weak"

	"github.com/causeway-mesh/causeway/resources/proxypatch"
)

// LabelUnguarded with the value "true" on a MeshProxyPatch allows results that open what permissions close. Writing
// such a policy needs VerbUnguard. The label counts only in the zone in which the policy is written, because no other
// server can tell who wrote it.
const LabelUnguarded = "causeway.io/unguarded"

// Unguarded reports whether a policy carries LabelUnguarded.
func Unguarded(r *Resource) bool {
	return r.Type == TypeMeshProxyPatch && r.Labels[LabelUnguarded] == "true"
}

// LabelRequired with the value "true" on a MeshProxyPatch closes a proxy on which the policy cannot take effect: nobody
// reaches its inbounds or its gateway and egress listeners.
const LabelRequired = "causeway.io/required"

// Required reports whether a policy carries LabelRequired.
func Required(r *Resource) bool {
	return r.Type == TypeMeshProxyPatch && r.Labels[LabelRequired] == "true"
}

// proxyPatchRead is a conf of a MeshProxyPatch that was read without problems, while somebody has the result.
type proxyPatchRead struct {
	conf    json.RawMessage
	guarded bool
	edits   weak.Pointer[proxypatch.Edits]
}

// ReadProxyPatch reads a conf of r, a MeshProxyPatch, as proxypatch.Conf.Read does. The spec remembers the last result: who
// follows the store does not read again what was read when the policy was written. err means that the conf does not match its
// type.
func ReadProxyPatch(r *Resource, conf json.RawMessage, guarded bool) (edits *proxypatch.Edits, wrong []proxypatch.Problem, err error) {
	if last := r.Spec.patch.Load(); last != nil && last.guarded == guarded && bytes.Equal(last.conf, conf) {
		if edits := last.edits.Value(); edits != nil {
			return edits, nil, nil
		}
	}
	var typed proxypatch.Conf
	if err := json.Unmarshal(conf, &typed); err != nil {
		return nil, nil, err
	}
	if edits, wrong = typed.Read(guarded); len(wrong) == 0 {
		r.Spec.patch.Store(&proxyPatchRead{conf, guarded, weak.Make(edits)})
	}
	return edits, wrong, nil
}

// proxyPatch checks a MeshProxyPatch alone. Its effect on a proxy is checked where proxies are configured.
func (v *validation) proxyPatch(conf json.RawMessage, at *fieldPath) {
	if v.peer {
		decodeConf(v, conf, at, func(*validation, *proxypatch.Conf, *fieldPath) {})
		return
	}
	_, wrong, err := ReadProxyPatch(v.resource, conf, !Unguarded(v.resource))
	if err != nil {
		v.fail(at, "%v", err)
	}
	for _, problem := range wrong {
		at := at
		for _, part := range problem.Path {
			if i, err := strconv.Atoi(part); err == nil {
				at = at.item(i)
			} else {
				at = at.field(part)
			}
		}
		v.fail(at, "%s", problem.Text)
	}
}
