package main

import (
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// gatewayType is the table of MeshGateway. A test compares it with the fields that a MeshGateway has.
var gatewayType = policyType{
	resources.TypeMeshGateway,
	"For Dataplanes of the type BUILTIN. [Gateways](../gateways.md) says which, who may route on one, and which policies count there. Each port is a listener, " +
		"named by the gateway's KRI with the port; a change of a MeshGateway replaces the listeners that differ. Routes and certificates are resources of their own.",
	[]policyField{
		{"selectors[].match", "nothing: it chooses the proxies", "a Dataplane whose gateway tags meet all of one has the listeners"},
		{"tags", "nothing: they are those of each listener", "routes with them in `targetRef.tags` are for it"},
		{"conf.listeners[].port", "a listener on the Dataplane's address", "clients connect there"},
		{"conf.listeners[].protocol", "a connection manager for HTTP and ended HTTPS, a TCP proxy for the others", "requests go by MeshHTTPRoute, connections by MeshTCPRoute"},
		{"conf.listeners[].hostname", "domains of virtual hosts; `server_names` of a filter chain with TLS", "the most specific listener has a host"},
		{"conf.listeners[].tags", "nothing: they are held against `targetRef.tags` of routes", "a route is for the listeners that have them"},
		{"conf.listeners[].tls.mode", "TERMINATE: a TLS transport socket; PASSTHROUGH: none", "the gateway has the certificate, or the service"},
		{"conf.listeners[].tls.certificates[].secret", "an SDS secret, from the zone's sealed secrets", "the handshake has it; a renewed one moves nothing"},
		{"conf.listeners[].tls.certificates[].file", "the same, from `--external-secrets-dir`", "the same, within 2 s"},
		{"conf.listeners[].tls.certificates[].inline", "the same, from the sealed MeshGateway, in base64", "the same"},
		{"conf.listeners[].tls.certificates[].inlineString", "the same, as text", "the same"},
	},
	"conf.listeners[].crossMesh, conf.listeners[].resources.connectionLimit",
}

// writeGateways writes the section about gateways.
func writeGateways(b *strings.Builder) {
	b.WriteString("\n# Gateways\n\nWhat is not enforced is refused from users, and told of where a peer sent it.\n")
	writeTypes(b, []policyType{gatewayType}, shownElsewhere)
}
