package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// The second worked example of "Cross-resource references": a route of zone-1, its owner's timeout, and the timeout of
// a caller in zone-2.
const (
	producerRoute = `{type: MeshHTTPRoute, mesh: default, namespace: backend-ns, name: backend-route, spec: {to: [
  {targetRef: {kind: MeshService, name: backend}, rules: [{matches: [{path: {type: PathPrefix, value: /v2}}],
    default: {backendRefs: [{kind: MeshServiceSubset, name: backend, tags: {version: v2}}]}}]}]}}`
	routeTimeout = `{type: MeshTimeout, mesh: default, namespace: backend-ns, name: backend-route-timeout, spec: {to: [
  {targetRef: {kind: MeshHTTPRoute, name: backend-route}, default: {http: {requestTimeout: 5s}}}]}}`
	callersTimeout = `{type: MeshTimeout, mesh: default, namespace: frontend-ns, name: frontend-to-backend, spec: {to: [
  {targetRef: {kind: MeshHTTPRoute, labels: {kuma.io/display-name: backend-route, k8s.kuma.io/namespace: backend-ns, kuma.io/zone: zone-1}},
   default: {http: {requestTimeout: 3s}}}]}}`
	callersProxy = `{type: Dataplane, mesh: default, namespace: frontend-ns, name: frontend, networking: {address: 127.0.0.1, inbound: [{port: 18080}]}}`
)

// forecast is the result of a dry run for one document.
type forecast struct {
	Name, KRI, Result, Role string
	SyncedTo, Warnings      []string
	Proxies                 *struct {
		Zone  string
		Total int
		Items []string
	}
}

// forecastOf asks a server for the forecast of a document.
func (m *mesh) forecastOf(ctx context.Context, s *cluster.Server, document string) (forecast, error) {
	raw, err := m.CTL(ctx, s, strings.NewReader(document), "apply", "--dry-run=server", "-o", "json", "-f", "-")
	if err != nil {
		return forecast{}, err
	}
	var answer struct{ Results []forecast }
	if err := json.Unmarshal(raw, &answer); err != nil {
		return forecast{}, err
	}
	if len(answer.Results) != 1 {
		return forecast{}, fmt.Errorf("%d results: %s", len(answer.Results), raw)
	}
	return answer.Results[0], nil
}

// TestForecastAcrossZones checks that the forecast of a dry run comes true: where a policy goes, whom it concerns and
// what its references mean.
func TestForecastAcrossZones(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1", "zone-2")
	zone1, zone2 := m.zones["zone-1"], m.zones["zone-2"]
	m.apply(zone2, callersProxy)
	callers := m.mustForecast(zone2, callersTimeout)
	if !slices.ContainsFunc(callers.Warnings, func(w string) bool { return strings.Contains(w, "resolves to nothing") }) {
		t.Errorf("a reference to what is not there: warnings %q", callers.Warnings)
	}
	if callers.Result != "created" || callers.Role != "consumer" || !slices.Equal(callers.SyncedTo, []string{"global"}) ||
		callers.Proxies == nil ||
		!slices.Equal(callers.Proxies.Items, []string{"kri_dp_default_zone-2_frontend-ns_frontend_"}) {
		t.Errorf("the caller's timeout: %+v", callers)
	}
	if all, err := timeouts(t.Context(), zone2); err != nil || len(all) != 0 {
		t.Errorf("a dry run stored %v (%v)", all, err)
	}
	m.eventually("zone-1 to know zone-2", func(ctx context.Context) error {
		trusts, err := zone1.API.List(ctx, "/meshes/default/meshtrusts")
		if err == nil && len(trusts) < 2 {
			err = errNotYet
		}
		return err
	})
	m.apply(zone1, backendService+"\n---\n"+producerRoute)
	route := m.mustForecast(zone1, routeTimeout)
	if route.Role != "producer" || !slices.Equal(route.SyncedTo, []string{"global", "zone-2"}) ||
		route.Proxies.Zone != "zone-1" ||
		len(route.Warnings) != 1 ||
		!strings.Contains(route.Warnings[0], "only the proxies in zone-1 are counted, and the resource is synced to zone-2") {
		t.Errorf("the route owner's timeout: %+v", route)
	}
	m.apply(zone1, routeTimeout)
	m.checkRouteReference(zone2)
	m.eventually("the caller's reference to mean something", func(ctx context.Context) error {
		callers, err := m.forecastOf(ctx, zone2, callersTimeout)
		if err == nil && len(callers.Warnings) > 0 {
			err = errNotYet
		}
		return err
	})
	service, err := byDisplayName(t.Context(), zone2, "/meshes/default/meshservices")
	m.must(err)
	global := m.mustForecast(m.global, fmt.Sprintf(`{type: MeshTimeout, mesh: default, name: p, spec: {to: [
  {targetRef: {kind: MeshService, name: %s}, default: {http: {requestTimeout: 1s}}}]}}`, service["backend"].Name))
	if global.Role != "system" || !slices.Equal(global.SyncedTo, []string{"zone-1", "zone-2"}) ||
		len(global.Warnings) > 0 || global.Proxies.Total != 1 || global.Proxies.Zone != "" {
		t.Errorf("the global's timeout for a service by its hashed name: %+v", global)
	}
	m.checkInspectedService(zone2)
}

// checkInspectedService checks inspect where only a copy of a service is: it names the service's zone, and what shapes
// the callers' traffic to it.
func (m *mesh) checkInspectedService(callers *cluster.Server) {
	m.t.Helper()
	m.apply(callers, `{type: MeshTimeout, mesh: default, namespace: frontend-ns, name: own, spec: {to: [
  {targetRef: {kind: MeshService, labels: {kuma.io/display-name: backend, kuma.io/zone: zone-1}}, default: {http: {requestTimeout: 4s}}}]}}`)
	out, err := m.CTL(m.t.Context(), callers, nil, "inspect", "service", "kri_msvc_default_zone-1_backend-ns_backend_")
	m.must(err)
	for _, want := range []string{
		"proxies: in zone-1, where the service lives",
		"traffic to it  MeshTimeout\n  from the only proxy: kri_dp_default_zone-2_frontend-ns_frontend_\n",
		"1. kri_mt_default_zone-2_frontend-ns_own_\n", "traffic to it  MeshHTTPRoute\n",
		"1. kri_mhttpr_default_zone-1_backend-ns_backend-route_\n",
	} {
		if !strings.Contains(string(out), want) {
			m.t.Errorf("inspect service: want %q in\n%s", want, out)
		}
	}
}

func (m *mesh) mustForecast(s *cluster.Server, document string) forecast {
	m.t.Helper()
	f, err := m.forecastOf(m.t.Context(), s, document)
	m.must(err)
	return f
}

// checkRouteReference checks that the timeout's copy refers to the copy of the route, and the route's to that of the
// service.
func (m *mesh) checkRouteReference(s *cluster.Server) {
	m.t.Helper()
	copied := m.arrives(s, "backend-route-timeout")
	routes, err := byDisplayName(m.t.Context(), s, "/meshes/default/meshhttproutes")
	m.must(err)
	services, err := byDisplayName(m.t.Context(), s, "/meshes/default/meshservices")
	m.must(err)
	for _, tt := range []struct{ of, names cluster.Item }{{copied, routes["backend-route"]},
		{routes["backend-route"], services["backend"]}} {
		var spec struct {
			To []struct {
				TargetRef struct{ Name, Namespace string }
			}
		}
		m.must(json.Unmarshal(tt.of.Spec, &spec))
		if got := spec.To[0].TargetRef; got.Name != tt.names.Name || got.Namespace != "kuma-system" ||
			!strings.HasPrefix(got.Name, "backend-") {
			m.t.Errorf("on %s %s refers to %+v, want %s", s.Name(), tt.of.Name, got, tt.names.Name)
		}
	}
}
