package xds

import (
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestOutboundsThatNameNothing: an outbound without a backendRef and without the tag of a service gets no listener, and is
// among the proxy's problems; the others get theirs.
func TestOutboundsThatNameNothing(t *testing.T) {
	t.Parallel()
	dp := testResource(dataplaneKey("caller"), nil, map[string]any{"networking": map[string]any{"address": "192.0.2.1", "outbound": []any{
		map[string]any{"port": 1001, "tags": map[string]any{"version": "v1"}},
		map[string]any{"port": 1002, "backendRef": map[string]any{"kind": "MeshService", "name": "backend"}},
		map[string]any{"port": 1003, "tags": map[string]any{"kuma.io/service": "backend"}},
	}}})
	served, problems, err := outboundsOf(dp)
	if err != nil || len(served) != 2 || served[0].listen.port != 1002 || served[1].listen.port != 1003 {
		t.Errorf("%v, %v", served, err)
	}
	if len(problems) != 1 || problems[0] != "networking.outbound[0]: "+resources.NamelessOutbound {
		t.Errorf("the problems: %q", problems)
	}
}
