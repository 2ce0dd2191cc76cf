package xds

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// patchReader reads each MeshProxyPatch of a mesh once, for all proxies that it selects: values may have 128 KiB of
// YAML. Proxies.mu guards it. A nil patchReader keeps nothing.
type patchReader struct{ known map[resources.Key]*readPatch }

// readPatch is a policy as it was read. Either patch or problem is set.
type readPatch struct {
	policy  *matching.Policy
	patch   *patch
	problem string
}

func newPatchReader() *patchReader { return &patchReader{known: map[resources.Key]*readPatch{}} }

// forget drops a policy.
func (r *patchReader) forget(key resources.Key) { delete(r.known, key) }

// read returns a policy for a Dataplane of this zone.
func (r *patchReader) read(policy *matching.Policy, dataplane *resources.Resource) *readPatch {
	if r == nil {
		return readPatchOf(policy, dataplane)
	}
	known := r.known[policy.Resource.Key]
	if known == nil || known.policy != policy {
		known = readPatchOf(policy, dataplane)
		r.known[policy.Resource.Key] = known
	}
	return known
}

func readPatchOf(policy *matching.Policy, dataplane *resources.Resource) *readPatch {
	raw := policy.ConfOfProxy()
	sum := sha256.Sum256(raw)
	kri := policy.KRI.String()
	p := &patch{kri: kri, id: kri + " " + hex.EncodeToString(sum[:8]),
		unguarded: resources.Unguarded(policy.Resource) && isOwn(policy.Resource, dataplane),
		required:  resources.Required(policy.Resource), ofOperator: policy.Role == resources.RoleSystem}
	read, wrong, err := resources.ReadProxyPatch(policy.Resource, raw, !p.unguarded)
	switch {
	case err != nil:
		return &readPatch{policy: policy, problem: "the conf does not match its type: " + err.Error()}
	case len(wrong) > 0:
		return &readPatch{policy: policy, problem: oneLine(wrong[0].Error())}
	}
	p.conf = read
	return &readPatch{policy: policy, patch: p}
}
