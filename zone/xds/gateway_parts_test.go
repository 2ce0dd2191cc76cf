package xds

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// gatewayWith returns the bytes of the routes of a gateway, and its problems. edit changes the documents of
// testdata/network/gateway.yaml.
func gatewayWith(t *testing.T, edit func(string) string) (routes int, problems string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "network", "gateway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	edited := edit(string(raw))
	if edited == string(raw) {
		t.Fatal("nothing is edited")
	}
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSession(testProxies(storeOf(t, file)))
	defer s.end()
	if err := s.identify(testNode("caller")); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.proxy.state.Load().served(kindRoute) {
		routes += len(r.delta.GetResource().GetValue())
	}
	return routes, s.proxy.record.problems[problemGateway]
}

// TestPartsOfARuleAreBounded: each part of a weighted rule is a route with all of the rule.
func TestPartsOfARuleAreBounded(t *testing.T) {
	t.Parallel()
	const services = 60
	var refs, confs, headers []string
	var documents strings.Builder
	for i := range services {
		fmt.Fprintf(&documents, "\n---\ntype: MeshService\nmesh: default\nname: s%d\nspec: {selector: {dataplaneLabels: {matchLabels: {app: backend}}}, ports: [{name: http, port: 80, targetPort: main, appProtocol: http}]}", i)
		refs = append(refs, fmt.Sprintf("{kind: MeshService, name: s%d, port: 80}", i))
		confs = append(confs, fmt.Sprintf("{targetRef: {kind: MeshService, name: s%d}, default: {http: {requestTimeout: %ds}}}", i, i+1))
	}
	for i := range 100 {
		headers = append(headers, fmt.Sprintf("{name: h%d, value: %s}", i, strings.Repeat("x", 1000)))
	}
	fmt.Fprintf(&documents, "\n---\ntype: MeshTimeout\nmesh: default\nname: each\nspec: {to: [%s]}", strings.Join(confs, ", "))
	fmt.Fprintf(&documents, "\n---\ntype: MeshHTTPRoute\nmesh: default\nname: wide\nspec: {targetRef: {kind: MeshGateway, name: edge}, to: [{targetRef: {kind: Mesh}, hostnames: [w.shop.example], rules: [{matches: [{path: {type: Exact, value: /wide}}], default: {backendRefs: [%s], filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [%s]}}]}}]}]}",
		strings.Join(refs, ", "), strings.Join(headers, ", "))
	routes, problems := gatewayWith(t, func(text string) string { return text + documents.String() })
	if routes > maxRouteBytes || routes == 0 || !strings.Contains(problems, "exceed") {
		t.Errorf("the routes have %d bytes, want at most %d; problems: %q", routes, maxRouteBytes, problems)
	}
}

// TestConnectionsOfARuleThatDiffer: a rule for connections is told of only if its services would have other timeouts or
// retries of connections, and of the services it concerns.
func TestConnectionsOfARuleThatDiffer(t *testing.T) {
	t.Parallel()
	const before = "[{kind: MeshService, name: backend, port: 81}]"
	for name, c := range map[string]struct{ refs, conf, want string }{
		"grpc and tcp":        {refs: "[{kind: MeshService, name: backend, port: 81}, {kind: MeshService, name: backend, port: 80}]"},
		"timeouts of another": {refs: "[{kind: MeshService, name: backend, port: 81}, {kind: MeshService, name: backend, port: 80}]", conf: "{http: {requestTimeout: 3s}}"},
		"idle timeouts": {refs: "[{kind: MeshService, name: backend, port: 81}, {kind: MeshService, name: backend, port: 80}]", conf: "{idleTimeout: 3s}",
			want: "those of kri_msvc_default_zone-1__backend_raw and not of kri_msvc_default_zone-1__backend_http"},
		"a service that is not there": {refs: "[{kind: MeshService, name: lost, port: 1}, {kind: MeshService, name: backend, port: 80}]", conf: "{idleTimeout: 3s}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := gatewayWith(t, func(text string) string {
				text = strings.Replace(text, before, c.refs, 1)
				text = strings.Replace(text, "appProtocol: http", "appProtocol: grpc", 1)
				if c.conf != "" {
					text += "\n---\ntype: MeshTimeout\nmesh: default\nname: one\nspec: {to: [{targetRef: {kind: MeshService, name: backend, sectionName: http}, default: " + c.conf + "}]}"
				}
				return text
			})
			if told := strings.Contains(problems, "connections of one rule"); told != (c.want != "") || !strings.Contains(problems, c.want) {
				t.Errorf("problems %q, want %q", problems, c.want)
			}
		})
	}
}
