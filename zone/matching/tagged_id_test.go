package matching_test

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/zone/matching"
)

// TestTaggedID: items for the one port of the service apply to the tags, so another name of it is another meaning.
func TestTaggedID(t *testing.T) {
	t.Parallel()
	const dataplane = `{type: Dataplane, spec: {networking: {address: 192.0.2.1, inbound: [{port: 80, protocol: http, tags: {kuma.io/service: b}}]}}}` + "\n"
	meaning := func(ports string) string {
		in := taggedInput(t, dataplane+`{type: MeshService, zone: zone-1, spec: {selector: {dataplaneTags: {kuma.io/service: b}}, ports: [`+ports+`]}}`)
		in.Tags = map[string]string{"kuma.io/service": "b"}
		return matching.NewTagged(in).ID()
	}
	first := meaning(`{port: 80}`)
	if again := meaning(`{port: 80, appProtocol: http}`); again != first {
		t.Errorf("a service whose sections are the same: got %q, want %q", again, first)
	}
	for _, other := range []string{`{port: 80, name: web}`, `{port: 80}, {port: 81}`} {
		if meaning(other) == first {
			t.Errorf("ports %s mean the same as {port: 80}", other)
		}
	}
}

// TestTaggedName: no two sets of tags have one name, whatever characters their author chose.
func TestTaggedName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	names := map[string]map[string]string{}
	for _, tags := range []map[string]string{
		{"kuma.io/service": "b", "version": "v1"},
		{"kuma.io/service": "b,version=v1"},
		{"kuma.io/service": "b", "version": "v1,x=y"},
		{"kuma.io/service": "b", "version": "v1", "x": "y"},
		{"kuma.io/service": "b", "version": "v1", "x": "y;"},
		{"kuma.io/service": "b", "version": "v1,x=y;"},
		{"kuma.io/service": "b", "version": long},
		{"kuma.io/service": "b,version=" + long},
	} {
		name := matching.TaggedName("default", "", tags)
		if other, taken := names[name]; taken {
			t.Errorf("%v and %v are both %s", other, tags, name)
		}
		names[name] = tags
	}
	if got := matching.TaggedName("default", "shop", map[string]string{"kuma.io/service": "b", "version": "v1"}); got != "tags_default_shop_[kuma.io/service=b,version=v1]" {
		t.Errorf("usual tags are called %s", got)
	}
}
