package resources

import (
	"cmp"
	"fmt"
)

// typeZoneEgress is a peer's type that has another form on this server.
const typeZoneEgress = "ZoneEgress"

// insteadOf says what to write instead of a document of a type that only peers have, or "" if it does not know.
func insteadOf(name string, doc *node) string {
	if name != typeZoneEgress {
		return ""
	}
	text := func(at *node, fields ...string) string {
		for _, f := range fields {
			if at == nil {
				return ""
			}
			at = at.get(f)
		}
		if at == nil || at.kind != stringNode && at.kind != numberNode {
			return ""
		}
		return at.text
	}
	networking := doc.get("networking")
	if spec := doc.get("spec"); networking == nil && spec != nil {
		networking = spec.get("networking")
	}
	called := cmp.Or(text(doc, "name"), text(doc, "metadata", "name"), "egress")
	return fmt.Sprintf(": an egress is a Dataplane here, one for each mesh with routing.zoneEgress: true. Write "+
		"{type: Dataplane, mesh: default, name: %q, networking: {address: %q, listeners: [{type: ZoneEgress, port: %s, name: out}]}}, and start its Envoy with the bootstrap of `causeway-zone bootstrap --egress`",
		shorten(called), shorten(cmp.Or(text(networking, "address"), "192.0.2.1")), shorten(cmp.Or(text(networking, "port"), "10002")))
}
