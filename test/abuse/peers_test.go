package abuse

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// What the owners of the client and of the victim write in zone-1, and what the attacker writes in zone-2.
const (
	documentsOfZone1 = `{type: MeshService, mesh: default, namespace: victims, name: victim, spec: {
  selector: {dataplaneLabels: {matchLabels: {app: victim}}}, ports: [{name: http, port: 80, targetPort: http, appProtocol: http}]}}
---
{type: MeshTrafficPermission, mesh: default, namespace: victims, name: allow-client, spec: {rules: [{default: {allow: [
  {spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/ns/clients/sa/client"}}]}}]}}`
	documentsOfZone2 = `{type: MeshService, mesh: default, namespace: cats, name: cat-picture, spec: {
  selector: {dataplaneLabels: {matchLabels: {app: cat}}}, ports: [{name: http, port: 80, targetPort: http, appProtocol: http}]}}
---
{type: MeshTrafficPermission, mesh: default, namespace: cats, name: allow-client, spec: {rules: [{default: {allow: [
  {spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/ns/clients/sa/client"}}]}}]}}`
	routeOfZone2 = `{type: MeshHTTPRoute, mesh: default, namespace: cats, name: route, spec: {to: [{targetRef: {kind: MeshService, name: cat-picture}, rules: [
  {matches: [{path: {type: PathPrefix, value: /evil}}], default: {
    filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: /admin/delete-all}}},
      {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-admin, value: "yes"}]}}],
    backendRefs: [{kind: MeshService, labels: {kuma.io/display-name: victim, kuma.io/zone: zone-1}, port: 80}]}},
  {matches: [{path: {type: PathPrefix, value: /mirror}}], default: {filters: [{type: RequestMirror, requestMirror: {
    backendRef: {kind: MeshService, labels: {kuma.io/display-name: victim, kuma.io/zone: zone-1}, port: 80}}}]}}]}]}}`
	grantOfVictim = `{type: MeshReferenceGrant, mesh: default, namespace: victims, name: cats, spec: {
  from: [{kind: MeshHTTPRoute, zone: zone-2, namespace: cats}], to: [{kind: MeshService, name: victim}]}}`
	grantOfZone2 = `{type: MeshReferenceGrant, mesh: default, namespace: cats, name: cats, spec: {
  from: [{kind: MeshHTTPRoute, namespace: cats}], to: [{kind: MeshService, zone: zone-1, namespace: victims}]}}`
)

// takenOver is zone-1 with a client and a victim, and the compromised zone-2 with the service that the client calls.
type takenOver struct {
	*cluster.Cluster
	t            *testing.T
	zone1, zone2 *cluster.Server
	client       *cluster.Workload
	victim       *cluster.Workload
}

const takeoverPatience = 60 * time.Second

// TestRouteOfATakenOverZone checks, with real Envoys, that the routes of a compromised zone for its own service cannot
// send that service's clients to another owner's service, by rewriting or mirroring. The twin is the same route with
// the permission of the victim's owner.
func TestRouteOfATakenOverZone(t *testing.T) {
	t.Parallel()
	w := newTakenOver(t)
	w.eventually("the client's call to be answered", w.calls("/picture", http.StatusOK, "cat in zone-2"))

	w.apply(w.zone2, routeOfZone2)
	w.eventually("the route to send to nobody", w.calls("/evil", http.StatusServiceUnavailable, ""))
	w.eventually("the mirrored call to be answered by the service", w.calls("/mirror", http.StatusOK, "cat in zone-2"))
	if err := w.zone2.API.Put(t.Context(), "/meshes/default/meshreferencegrants/cats?namespace=cats",
		json.RawMessage(grantJSON(t, grantOfZone2))); cluster.StatusOf(err) != http.StatusBadRequest {
		t.Errorf("zone-2 grants what is not its own: %v", err)
	}
	if n := w.victim.Inbound("http").Count(); n != 0 {
		t.Fatalf("the victim got %d requests", n)
	}

	w.apply(w.zone1, grantOfVictim)
	w.eventually("the owner's leave to count", w.calls("/evil", http.StatusOK, "victim in zone-1"))
	w.must(w.zone1.API.Delete(t.Context(), "/meshes/default/meshreferencegrants/cats?namespace=victims"))
	w.eventually("the owner's leave to be taken back", w.calls("/evil", http.StatusServiceUnavailable, ""))
}

func newTakenOver(t *testing.T) *takenOver {
	t.Helper()
	w := newCluster(t)
	global, err := w.StartGlobal(t.Context(), cluster.GlobalConfig{})
	w.must(err)
	for name, zone := range map[string]**cluster.Server{"zone-1": &w.zone1, "zone-2": &w.zone2} {
		*zone, err = w.StartZone(t.Context(), cluster.ZoneConfig{Name: name, Global: global})
		w.must(err)
		w.must((*zone).WaitMesh(t.Context(), "default"))
	}
	w.workload(w.zone2, "cats", "cat")
	_, err = w.StartIngress(t.Context(), w.zone2, "ingress")
	w.must(err)
	w.victim = w.workload(w.zone1, "victims", "victim")
	w.apply(w.zone1, documentsOfZone1)
	w.apply(w.zone2, documentsOfZone2)
	w.client = w.workload(w.zone1, "clients", "client",
		cluster.OutboundConfig{Name: "cat-picture", BackendRef: map[string]any{
			"kind": "MeshService", "labels": map[string]any{"kuma.io/display-name": "cat-picture", "kuma.io/zone": "zone-2"},
		}})
	return w
}

// newCluster returns a cluster of real processes without a server. A failing test shows the end of their logs.
func newCluster(t *testing.T) *takenOver {
	t.Helper()
	bin := t.TempDir()
	w := &takenOver{t: t}
	envoy, err := cluster.FindEnvoy("")
	w.must(err)
	w.must(cluster.Build(t.Context(), bin))
	w.Cluster, err = cluster.New(cluster.Config{Bin: bin, Envoy: envoy, Dir: t.TempDir()})
	w.must(err)
	t.Cleanup(func() {
		if t.Failed() {
			var logs strings.Builder
			w.Tails(&logs, 15)
			t.Log(logs.String())
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *takenOver) workload(zone *cluster.Server, namespace, name string,
	outbounds ...cluster.OutboundConfig) *cluster.Workload {
	w.t.Helper()
	out, err := w.StartWorkload(w.t.Context(), cluster.WorkloadConfig{
		Zone: zone, Mesh: "default", Namespace: namespace, Name: name, ServiceAccount: name,
		Labels:   map[string]string{"app": name},
		Inbounds: []cluster.InboundConfig{{Name: "http", Protocol: cluster.ProtocolHTTP}}, Outbounds: outbounds,
	})
	w.must(err)
	w.t.Cleanup(out.Close)
	return out
}

func (w *takenOver) apply(s *cluster.Server, documents string) {
	w.t.Helper()
	_, err := w.CTL(w.t.Context(), s, strings.NewReader(documents), "apply", "-f", "-")
	w.must(err)
}

func grantJSON(t *testing.T, document string) []byte {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// calls returns a condition: the client's call to cat-picture ends with the status and a body that contains by.
func (w *takenOver) calls(path string, status int, by string) func(context.Context) error {
	return func(ctx context.Context) error {
		got, body, err := w.client.Call(ctx, "cat-picture", path)
		if err == nil && (got != status || !strings.Contains(body, by)) {
			err = fmt.Errorf("got %d %s", got, body)
		}
		return err
	}
}

func (w *takenOver) eventually(what string, condition func(context.Context) error) {
	w.t.Helper()
	w.must(cluster.Until(w.t.Context(), takeoverPatience, what, condition))
}

func (w *takenOver) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}
