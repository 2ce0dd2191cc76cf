package e2e

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// sensitiveFields has a document for each place where specs hold secrets. SECRET stands for a secret, a new one each
// time, and PAIR for a certificate and its key, with a secret behind them. Only the route `shown` concerns the test's
// proxy, which needs the secret and shows it on its own machine: what it shows through the zone has none.
var sensitiveFields = []string{
	`{type: MeshExternalService, mesh: default, name: keys, spec: {match: {port: 443, protocol: http}, endpoints: [{address: 127.0.0.1, port: 1}],
	 tls: {enabled: true, verification: {mode: SkipAll, clientCert: {inlineString: public}, clientKey: {inlineString: SECRET}}}}}`,
	`{type: MeshGateway, mesh: default, name: keys, selectors: [{match: {kuma.io/service: nobody}}],
	 conf: {listeners: [{port: 8443, protocol: HTTPS, tls: {mode: TERMINATE, certificates: [{inlineString: "PAIR"}]}}]}}`,
	`{type: MeshHTTPRoute, mesh: default, name: keys, spec: {targetRef: {kind: Dataplane, labels: {app: nobody}}, to: [{targetRef: {kind: MeshService, name: nobody},
	 rules: [{matches: [{path: {type: PathPrefix, value: /}}], default: {filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: Authorization, value: SECRET}]}}]}}]}]}}`,
	`{type: MeshHTTPRoute, mesh: default, name: shown, spec: {targetRef: {kind: Mesh}, to: [{targetRef: {kind: MeshService, labels: {kuma.io/display-name: backend}},
	 rules: [{matches: [{path: {type: PathPrefix, value: /}}], default: {filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: Authorization, value: SECRET}]}}]}}]}]}}`,
	`{type: MeshHealthCheck, mesh: default, name: keys, spec: {targetRef: {kind: Dataplane, labels: {app: nobody}}, to: [{targetRef: {kind: MeshService, name: nobody},
	 default: {http: {requestHeadersToAdd: {set: [{name: Authorization, value: SECRET}]}}}}]}}`,
	`{type: MeshProxyPatch, mesh: default, name: keys, spec: {targetRef: {kind: Dataplane, labels: {app: nobody}},
	 default: {appendModifications: [{cluster: {operation: Add, value: "{name: keys, transport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {tls_certificates: [{private_key: {inline_string: '-----BEGIN PRIVATE KEY-----SECRET'}}]}}}}"}}]}}}`,
	`{type: MeshRateLimit, mesh: default, name: keys, spec: {targetRef: {kind: Dataplane, labels: {app: nobody}}, to: [{targetRef: {kind: Mesh}, default: {password: SECRET}}]}}`,
}

// ofProxy is the kind of the secret that the test's proxy needs.
const ofProxy = "secret of the proxy"

// fields puts a secret into each such place of a spec on the global, and waits until the zone has the documents that
// cross.
func (l *leaks) fields() {
	l.t.Helper()
	pair := newClientKey(l.t)
	l.loot.addText("key in a MeshGateway", pair.line)
	quoted := strings.Trim(fmt.Sprintf("%q", pair.certificate+pair.key), `"`)
	place := regexp.MustCompile("SECRET")
	named := regexp.MustCompile(`type: (\w+), mesh: default, name: (\w+)`)
	// A MeshIdentity with a key in it is refused, and keys in a Mesh are read only if a peer wrote it.
	covered := map[resources.Type]bool{resources.TypeMeshIdentity: true, resources.TypeMesh: true}
	for _, document := range sensitiveFields {
		found := named.FindStringSubmatch(document)
		kind := resources.Type(found[1])
		covered[kind] = true
		document = strings.ReplaceAll(document, "PAIR", quoted+"SECRET")
		l.apply(l.global, place.ReplaceAllStringFunc(strings.ReplaceAll(document, "\n\t", " "), func(string) string {
			random := make([]byte, 24)
			_, _ = rand.Read(random) // it never fails
			text := "s3cret" + hex.EncodeToString(random)
			if found[2] == "shown" {
				l.loot.addText(ofProxy, text)
			} else {
				l.loot.addText("secret in a "+string(kind), text)
			}
			return text
		}))
		d, _ := resources.Lookup(kind)
		l.arrivesAs(found[2], "/meshes/default/"+d.Path)
	}
	for _, d := range resources.Descriptors() {
		if d.Sensitive != nil && d.Policy == nil && !covered[d.Type] {
			l.t.Errorf("%s has places for secrets, and no document of this test fills one", d.Type)
		}
	}
}
