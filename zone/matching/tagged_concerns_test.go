package matching_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/zone/matching"
)

// TestTaggedConcerns: a service that changes what tags mean concerns them.
func TestTaggedConcerns(t *testing.T) {
	t.Parallel()
	changed := 0
	rapid.Check(t, func(rt *rapid.T) {
		from := func(list ...string) string { return rapid.SampledFrom(list).Draw(rt, "one of") }
		tags := func() string {
			return from("kuma.io/service: a", "kuma.io/service: b", "kuma.io/service: a, version: v1", "version: v1")
		}
		var before []string
		for range rapid.IntRange(0, 3).Draw(rt, "Dataplanes") {
			before = append(before, fmt.Sprintf(`{type: Dataplane, namespace: %q, labels: {app: %s}, spec: {networking: {address: 192.0.2.1, inbound: [{port: 80, %stags: {%s}}]}}}`,
				from("", "shop"), from("x", "y"), from("", "protocol: http, "), tags()))
		}
		service := func() string {
			return fmt.Sprintf(`{type: MeshService, zone: %s, namespace: %q, spec: {selector: {%s}, ports: [{port: %s, appProtocol: %s}]%s}}`,
				from("zone-1", "zone-2"), from("", "shop"), from("dataplaneTags: {"+tags()+"}", "dataplaneLabels: {matchLabels: {app: x}}"),
				from("80", "81"), from("http", "grpc"), from("", ", identities: [{type: ServiceTag, value: a}]"))
		}
		for range rapid.IntRange(0, 2).Draw(rt, "services") {
			before = append(before, service())
		}
		want := map[string]string{"kuma.io/service": "a"}
		if rapid.Bool().Draw(rt, "version") {
			want["version"] = "v1"
		}
		meaning := func(documents []string) (*matching.Tagged, *matching.TaggedInput) {
			in := taggedInput(t, strings.Join(documents, "\n"))
			in.Namespace, in.Tags = "shop", want
			return matching.NewTagged(in), in
		}
		one := service()
		then, _ := meaning(append([]string{`{type: ZoneIngress, zone: zone-1, spec: {networking: {address: 192.0.2.9, port: 1}}}`}, before...))
		now, in := meaning(append([]string{`{type: ZoneIngress, zone: zone-1, spec: {networking: {address: 192.0.2.9, port: 1}}}`}, append(before, one)...))
		if then.ID() == now.ID() {
			return
		}
		changed++
		if last := in.Services[len(in.Services)-1].Resource; !then.ConcernsService(last, "zone-1") || !now.ConcernsService(last, "zone-1") {
			rt.Fatalf("%v means\n%s\nwithout, and\n%s\nwith\n%s", want, then.ID(), now.ID(), one)
		}
	})
	if changed == 0 {
		t.Error("no service has changed anything")
	}
	// Those of other tags and other namespaces concern none: each change would compute them all again.
	in := taggedInput(t, `{type: Dataplane, spec: {networking: {address: 192.0.2.1, inbound: [{port: 80, tags: {kuma.io/service: a}}]}}}
{type: MeshService, spec: {selector: {dataplaneTags: {kuma.io/service: b}}, ports: [{port: 80}]}}
{type: MeshService, namespace: shop, spec: {selector: {dataplaneLabels: {matchLabels: {app: x}}}, ports: [{port: 80}]}}`)
	in.Tags = map[string]string{"kuma.io/service": "a"}
	meaning := matching.NewTagged(in)
	for _, d := range in.Services {
		if meaning.ConcernsService(d.Resource, "zone-1") {
			t.Errorf("%s concerns %v", d.Resource.Spec.JSON(), in.Tags)
		}
	}
}
