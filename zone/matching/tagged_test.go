package matching_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// taggedInput reads resources of zone-1; labels that a document gives hold.
func taggedInput(t *testing.T, documents string) *matching.TaggedInput {
	t.Helper()
	in := &matching.TaggedInput{Mesh: "default", Zone: "zone-1"}
	for i, document := range strings.Split(strings.TrimSpace(documents), "\n") {
		raw, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		var head struct {
			Type      resources.Type
			Namespace string
			Zone      string
			Labels    map[string]string
			Spec      any
		}
		if err := yaml.Unmarshal(raw, &head); err != nil {
			t.Fatal(err)
		}
		body, err := yaml.Marshal(head.Spec)
		if err == nil {
			body, err = yaml.YAMLToJSON(body)
		}
		if err != nil {
			t.Fatal(err)
		}
		spec, err := resources.NewSpec(head.Type, body)
		if err != nil {
			t.Fatal(err)
		}
		r := &resources.Resource{Key: resources.Key{Type: head.Type, Mesh: "default", Name: fmt.Sprintf("r%d", i)}, Spec: spec,
			Labels: map[string]string{resources.LabelZone: head.Zone}}
		if head.Namespace != "" {
			r.Labels[resources.LabelNamespace] = head.Namespace
		}
		maps.Copy(r.Labels, head.Labels)
		if head.Zone == "" {
			r.Labels[resources.LabelZone] = "zone-1"
		}
		switch head.Type {
		case resources.TypeDataplane:
			p, err := matching.NewProxy(r)
			if err != nil {
				t.Fatal(err)
			}
			in.Proxies = append(in.Proxies, p)
		case resources.TypeMeshService:
			d, err := matching.NewDestination(r)
			if err != nil {
				t.Fatal(err)
			}
			in.Services = append(in.Services, d)
		default:
			r.Mesh = ""
			in.Ingresses = append(in.Ingresses, r)
		}
	}
	return in
}

// TestTagged: what tags mean, by what carries them and by the namespace of the caller.
func TestTagged(t *testing.T) {
	t.Parallel()
	const (
		dp      = `{type: Dataplane, spec: {networking: {address: 192.0.2.1, inbound: [{port: 80, protocol: %s, tags: {kuma.io/service: b, version: v1}}]}}}` + "\n"
		in      = `{type: Dataplane, namespace: %s, spec: {networking: {address: 192.0.2.1, inbound: [{port: 80, tags: {kuma.io/service: b}}]}}}` + "\n"
		service = `{type: MeshService, zone: %s, spec: {selector: {dataplaneTags: {kuma.io/service: b%s}}, ports: [{port: 80, appProtocol: http}]}}` + "\n"
		said    = `{type: MeshService, zone: zone-2, spec: {selector: {dataplaneTags: {app: x}}, identities: [{type: ServiceTag, value: b}], ports: [{port: 80, appProtocol: grpc}]}}` + "\n"
		theirs  = `{type: MeshService, zone: zone-2, namespace: mesh-two, labels: {kuma.io/policy-role: system, kuma.io/display-name: b}, spec: {selector: {dataplaneTags: {kuma.io/service: b}}, ports: [{port: 80}]}}` + "\n"
		lists   = `{type: ZoneIngress, zone: zone-3, spec: {networking: {address: 192.0.2.9, port: 1}, availableServices: [{mesh: default, tags: {kuma.io/service: b, kuma.io/zone: zone-3, kuma.io/protocol: http}}]}}` + "\n"
		another = `{type: ZoneIngress, zone: zone-3, spec: {networking: {address: 192.0.2.9, port: 1}, availableServices: [{mesh: other, tags: {kuma.io/service: b}}, {mesh: default, externalService: true, tags: {kuma.io/service: b}}]}}` + "\n"
	)
	b := map[string]string{"kuma.io/service": "b"}
	v1 := map[string]string{"kuma.io/service": "b", "version": "v1"}
	f := fmt.Sprintf
	for name, c := range map[string]struct {
		documents, from string
		tags            map[string]string
		want            string
	}{
		"nobody":                              {f(dp, "http"), "", map[string]string{"kuma.io/service": "c"}, "no Dataplane carries the tags kuma.io/service=c on an inbound"},
		"by one tag":                          {f(dp, "http"), "", b, `"" http on 1`},
		"by two":                              {f(dp, "http") + f(in, `""`), "", v1, `"" http on 1`},
		"what all speak":                      {f(dp, "grpc") + f(dp, "http2"), "", b, `"" http2 on 2`},
		"if they differ":                      {f(dp, "grpc") + f(dp, "http"), "", b, `"" tcp on 2`},
		"the own namespace":                   {f(in, "cats") + f(in, "dogs") + f(in, `""`), "cats", b, `"cats"  on 1`},
		"else the operator's":                 {f(in, "cats") + f(in, "kuma-system"), "dogs", b, `""  on 1`},
		"else the only one":                   {f(in, "cats"), "dogs", b, `"cats"  on 1`},
		"of several none":                     {f(in, "cats") + f(in, "dogs"), "z", b, "Dataplanes of several namespaces carry the tags kuma.io/service=b on an inbound: add the tag k8s.kuma.io/namespace"},
		"the namespace by tag":                {f(in, "cats") + f(in, "dogs"), "z", map[string]string{"kuma.io/service": "b", "k8s.kuma.io/namespace": "dogs"}, `"dogs"  on 1`},
		"the zone by tag":                     {f(dp, "http") + f(service, "zone-2", ""), "", map[string]string{"kuma.io/service": "b", "kuma.io/zone": "zone-2"}, `"" http on 0 zone-2:80 same`},
		"of another zone":                     {f(service, "zone-2", ""), "", b, `"" http on 0 zone-2:80 same`},
		"a service of fewer tags is not it":   {f(service, "zone-2", ""), "", v1, "no Dataplane carries the tags kuma.io/service=b,version=v1 on an inbound"},
		"one of more tags is, and no same":    {f(service, "zone-2", ", version: v1"), "", b, `"" http on 0 zone-2:80`},
		"the service here is the same":        {f(dp, "http") + f(service, "zone-1", "") + f(service, "zone-2", ""), "", b, `"" http on 1 zone-2:80 same`},
		"two are not":                         {f(dp, "http") + f(service, "zone-1", "") + f(service, "zone-1", ""), "", b, `"" http on 1`},
		"an identity says the tag":            {said, "", b, `"" grpc on 0 zone-2:80 same`},
		"another operator's":                  {f(in, `""`) + theirs, "", b, `""  on 1 zone-2:80`},
		"an ingress lists it":                 {lists, "", b, `"" http on 0 zone-3`},
		"an ingress lists another mesh's":     {another, "", b, "no Dataplane carries the tags kuma.io/service=b on an inbound"},
		"an ingress lists no version":         {lists, "", v1, "no Dataplane carries the tags kuma.io/service=b,version=v1 on an inbound"},
		"a service without protocol gets one": {f(in, `""`) + f(service, "zone-1", ""), "", b, `"" http on 1 same`},
	} {
		t.Run(name, func(t *testing.T) {
			input := taggedInput(t, c.documents)
			input.Namespace, input.Tags = c.from, c.tags
			got := matching.NewTagged(input)
			text := got.Problem
			if text == "" {
				on := 0
				for _, p := range input.Proxies {
					on += len(got.Carriers(p))
				}
				text = fmt.Sprintf("%q %s on %d", got.Namespace, got.Protocol, on)
				for _, a := range got.Away {
					text += " " + a.Zone
					if a.Service != nil {
						text += ":" + a.Section
					}
				}
				if got.Same != nil {
					text += " same"
				}
			}
			if text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}
