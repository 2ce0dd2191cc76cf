package xds

import (
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestCollectorsOnTheMachine: no policy has a proxy send spans, metrics or logs to the zone's own server or to its admin
// interface, in whatever spelling, also if an earlier version stored it. An agent beside the proxy gets them.
func TestCollectorsOnTheMachine(t *testing.T) {
	t.Parallel()
	backends := func(kind, field, at string) map[string]any {
		return map[string]any{"backends": []any{map[string]any{"type": kind, strings.ToLower(kind[:1]) + kind[1:]: map[string]any{field: at}}}}
	}
	mesh := map[string]any{"kind": "Mesh"}
	for name, c := range map[string]struct {
		of   resources.Type
		spec func(at string) map[string]any
	}{
		"spans over OpenTelemetry": {resources.TypeMeshTrace, func(at string) map[string]any {
			return map[string]any{"default": backends("OpenTelemetry", "endpoint", at)}
		}},
		"spans for Zipkin": {resources.TypeMeshTrace, func(at string) map[string]any {
			return map[string]any{"default": backends("Zipkin", "url", "http://"+at+"/quitquitquit")}
		}},
		"spans for Datadog": {resources.TypeMeshTrace, func(at string) map[string]any {
			return map[string]any{"default": backends("Datadog", "url", "http://"+at)}
		}},
		"metrics": {resources.TypeMeshMetric, func(at string) map[string]any {
			return map[string]any{"default": backends("OpenTelemetry", "endpoint", at)}
		}},
		"logs of outbounds": {resources.TypeMeshAccessLog, func(at string) map[string]any {
			return map[string]any{"to": []any{map[string]any{"targetRef": mesh, "default": backends("OpenTelemetry", "endpoint", at)}}}
		}},
		"logs of inbounds": {resources.TypeMeshAccessLog, func(at string) map[string]any {
			return map[string]any{"from": []any{map[string]any{"targetRef": mesh, "default": backends("OpenTelemetry", "endpoint", at)}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at, because := range map[string]string{
				"127.0.0.1:5681": "port of the zone server", "[::ffff:127.0.0.1]:5681": "port of the zone server",
				"agent.example:5681": "port of the zone server", "127.0.0.1:9901": "the proxy's admin interface",
				"127.0.0.1:9903": "",
				"0.0.0.0:9901":   "the proxy's admin interface", "agent.example:9901": "the proxy's admin interface",
				"192.0.2.77:9901": "",
			} {
				collects, problems := collectorsWith(t, testResource(resources.Key{Type: c.of, Mesh: "default", Name: "p"}, nil, c.spec(at)))
				if collects != (because == "") || !strings.Contains(problems, because) || because == "" && problems != "" {
					t.Errorf("%s: sends %v, problems %q, want %q", at, collects, problems, because)
				}
			}
		})
	}
}

// collectorsWith reports whether the proxy of caller has the cluster of a collector, and its problems with policies.
func collectorsWith(t *testing.T, policy *resources.Resource) (collects bool, problems string) {
	t.Helper()
	s := storeOf(t, filepath.Join("testdata", "enforced", "mesh.yaml"))
	if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: policy}}}); err != nil {
		t.Fatal(err)
	}
	x := testProxies(s)
	x.cfg.Own = func(_ string, port uint32) bool { return port == 5681 }
	session := newSession(x)
	defer session.end()
	node := testNode("caller")
	node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{AdminKey: structpb.NewNumberValue(9901),
		PushKey: structpb.NewBoolValue(true)}}
	if err := session.identify(node); err != nil {
		t.Fatal(err)
	}
	for _, r := range session.proxy.state.Load().served(kindCluster) {
		collects = collects || r.name == traceCluster || r.name == PushedTo || strings.HasPrefix(r.name, "causeway_log")
	}
	for _, text := range session.proxy.record.problems {
		problems += text
	}
	return collects, problems
}
