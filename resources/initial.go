package resources

import (
	"fmt"
	"slices"

	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// LabelInitialPolicies marks a Mesh whose initial policies were created: they are never created again. It also marks
// these policies, which all others override.
const LabelInitialPolicies = "causeway.io/initial-policies"

const initialPoliciesCreated = "created"

// The confs of a mesh's initial policies. Proxies of a mesh without initial policies use those of MeshRetry and
// MeshCircuitBreaker where no policy applies: a request is retried only if no application can have seen it, and an
// endpoint that accepts no connection is ejected briefly.
const (
	initialRetry = `{"tcp": {"maxConnectAttempt": 4},
	  "http": {"numRetries": 3, "retryOn": ["ConnectFailure", "RefusedStream", "ResetBeforeRequest"]},
	  "grpc": {"numRetries": 3, "retryOn": ["ConnectFailure", "RefusedStream", "ResetBeforeRequest"]}}`
	initialBreaker = `{"outlierDetection": {"interval": "1s", "baseEjectionTime": "2s", "maxEjectionTime": "10s",
	  "maxEjectionPercent": 100, "splitExternalAndLocalErrors": true, "detectors": {"localOriginFailures": {"consecutive": 2}}}}`
)

var initialPolicies = []struct {
	t          Type
	name, conf string
}{
	{TypeMeshCircuitBreaker, "mesh-circuit-breaker-all-", initialBreaker},
	{TypeMeshRetry, "mesh-retry-all-", initialRetry},
}

// InitialConf returns the conf of the initial policy of a type, as its spec holds it, or nil.
func InitialConf(t Type) []byte {
	for _, p := range initialPolicies {
		if p.t == t {
			return []byte(p.conf)
		}
	}
	return nil
}

// InitialKeys returns the keys of a mesh's initial policies.
func InitialKeys(mesh string) []Key {
	out := make([]Key, len(initialPolicies))
	for i, p := range initialPolicies {
		out[i] = Key{Type: p.t, Mesh: mesh, Name: p.name + mesh}
	}
	return out
}

// HasInitialPolicies reports whether the initial policies of a Mesh were created, whatever users did with them since.
func HasInitialPolicies(mesh *Resource) bool {
	return mesh != nil && mesh.Labels[LabelInitialPolicies] == initialPoliciesCreated
}

// IsInitialPolicy reports whether a policy was created with its mesh.
func IsInitialPolicy(r *Resource) bool {
	return r.Labels[LabelInitialPolicies] == initialPoliciesCreated && InitialConf(r.Type) != nil
}

// MarkInitialPolicies marks a Mesh, which the caller must own.
func MarkInitialPolicies(mesh *Resource) { mesh.Labels[LabelInitialPolicies] = initialPoliciesCreated }

// InitialPolicies returns the policies to create with a Mesh, without the types that it skips. Source: Kuma's HTTP API,
// "Default policies".
func InitialPolicies(mesh *Resource, home Home) ([]*Resource, error) {
	spec, err := SpecAs[meshpb.Mesh](mesh)
	if err != nil {
		return nil, err
	}
	skip := spec.GetSkipCreatingInitialPolicies()
	var out []*Resource
	for i, key := range InitialKeys(mesh.Name) {
		if slices.Contains(skip, "*") || slices.Contains(skip, string(key.Type)) {
			continue
		}
		policy, err := NewSpec(key.Type, fmt.Appendf(nil,
			`{"targetRef": {"kind": "Mesh"}, "to": [{"targetRef": {"kind": "Mesh"}, "default": %s}]}`, initialPolicies[i].conf))
		if err != nil {
			return nil, err
		}
		made := home.Labelled(&Resource{Key: key, Spec: policy})
		made.Labels[LabelInitialPolicies] = initialPoliciesCreated
		out = append(out, made)
	}
	return out, nil
}
