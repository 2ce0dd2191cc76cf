package xds

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestOutboundsByTagsAreAProblem: an outbound without a backendRef gets no listener, and is among the proxy's problems;
// the others get theirs.
func TestOutboundsByTagsAreAProblem(t *testing.T) {
	dp := testResource(dataplaneKey("caller"), nil, map[string]any{"networking": map[string]any{"address": "192.0.2.1", "outbound": []any{
		map[string]any{"port": 1001, "tags": map[string]any{"kuma.io/service": "backend"}},
		map[string]any{"port": 1002, "backendRef": map[string]any{"kind": "MeshService", "name": "backend"}},
	}}})
	served, problems, err := outboundsOf(dp)
	if err != nil || len(served) != 1 || served[0].listen.port != 1002 {
		t.Errorf("%v, %v", served, err)
	}
	if len(problems) != 1 || !strings.HasPrefix(problems[0], "networking.outbound[0]: ") || !strings.Contains(problems[0], resources.TaggedOutbound) {
		t.Errorf("the problems: %q", problems)
	}
}
