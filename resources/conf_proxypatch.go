package resources

import (
	"strconv"

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

// proxyPatch checks a MeshProxyPatch alone. Its effect on a proxy is checked where proxies are configured.
func (v *validation) proxyPatch(c *proxypatch.Conf, at *fieldPath) {
	if v.peer {
		return
	}
	for _, problem := range c.Problems(!Unguarded(v.resource)) {
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
