package matching_test

import (
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

func TestWithServices(t *testing.T) {
	dataplane := document{Name: "dp", Zone: "zone-1", Namespace: "ns", Labels: map[string]string{"app": "x"},
		Spec: map[string]any{
			"networking": map[string]any{"inbound": []any{
				map[string]any{"name": "main", "port": 8080, "tags": map[string]any{"version": "v1"}},
				map[string]any{"name": "said", "port": 8081, "protocol": "kafka"},
				map[string]any{"name": "tagged", "port": 8082, "tags": map[string]any{"kuma.io/protocol": "grpc"}},
			}},
		}}
	proxy, err := matching.NewProxy(dataplane.resource(t, resources.TypeDataplane))
	if err != nil {
		t.Fatal(err)
	}
	port := func(fields ...any) map[string]any {
		p := map[string]any{"port": 80, "appProtocol": "http"}
		for i := 0; i < len(fields); i += 2 {
			p[fields[i].(string)] = fields[i+1]
		}
		return p
	}
	byLabels := map[string]any{"dataplaneLabels": map[string]any{"matchLabels": map[string]any{"app": "x"}}}
	for _, c := range []struct {
		name            string
		zone, namespace string
		selector        map[string]any
		port            map[string]any
		want            string
	}{
		{"by labels and port number", "zone-1", "ns", byLabels, port("targetPort", 8080), "http"},
		{"by the inbound's name", "zone-1", "ns", byLabels, port("targetPort", "main"), "http"},
		{"the same port on both sides", "zone-1", "ns", byLabels, port("port", 8080), "http"},
		{"by name", "zone-1", "ns", map[string]any{"dataplaneRef": map[string]any{"name": "dp"}},
			port("targetPort", 8080), "http"},
		{"by tags", "zone-1", "ns", map[string]any{"dataplaneTags": map[string]any{"version": "v1"}},
			port("targetPort", 8080), "http"},
		{"another port", "zone-1", "ns", byLabels, port("targetPort", 8083), ""},
		{"the service's own port does not count beside a target", "zone-1", "ns", byLabels,
			port("port", 8080, "targetPort", "other"), ""},
		{"other tags", "zone-1", "ns", map[string]any{"dataplaneTags": map[string]any{"version": "v2"}},
			port("targetPort", 8080), ""},
		{"another name", "zone-1", "ns", map[string]any{"dataplaneRef": map[string]any{"name": "dq"}},
			port("targetPort", 8080), ""},
		{"no selector", "zone-1", "ns", map[string]any{}, port("targetPort", 8080), ""},
		{"another zone", "zone-2", "ns", byLabels, port("targetPort", 8080), ""},
		{"another namespace", "zone-1", "other", byLabels, port("targetPort", 8080), ""},
		{"what the inbound says stands", "zone-1", "ns", byLabels, port("targetPort", 8081), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			service := document{Name: "s", Zone: c.zone, Namespace: c.namespace,
				Spec: map[string]any{"selector": c.selector, "ports": []any{c.port}}}
			got := proxy.WithServices([]*resources.Resource{service.resource(t, resources.TypeMeshService)})
			if got.Inbounds[0].AppProtocol != c.want || got.Inbounds[0].Protocol != matching.ProtocolOf(c.want) {
				t.Errorf("got %q, want %q", got.Inbounds[0].AppProtocol, c.want)
			}
			if got.Inbounds[1].AppProtocol != "kafka" || got.Inbounds[2].Protocol != matching.HTTP ||
				proxy.Inbounds[0].AppProtocol != "" {
				t.Errorf("other inbounds, or the proxy itself, changed: %+v", got.Inbounds)
			}
		})
	}
}
