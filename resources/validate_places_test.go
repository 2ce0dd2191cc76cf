package resources

import (
	"strings"
	"testing"
)

// TestPlacesOfADataplane checks that a proxy cannot listen twice on an address, however it is spelled: Envoy would
// refuse one of the two listeners.
func TestPlacesOfADataplane(t *testing.T) {
	t.Parallel()
	for about, tt := range map[string]struct{ networking, field string }{
		"two spellings of an inbound's address": {
			`{"address":"10.0.0.1","inbound":[{"port":80,"address":"2001:db8::1"},{"port":80,"address":"2001:0db8::1"}]}`,
			"networking.inbound[1].port"},
		"the same IPv4 address in IPv6": {
			`{"address":"10.0.0.1","inbound":[{"port":80},{"port":80,"address":"::ffff:10.0.0.1"}]}`,
			"networking.inbound[1].port"},
		"an egress on an inbound in another spelling": {
			`{"address":"2001:db8::1","inbound":[{"port":80}],"listeners":[{"type":"ZoneEgress","port":80,"address":"2001:DB8:0::1"}]}`,
			"networking.listeners[0].port"},
		"an inbound where connections are redirected to": {
			`{"address":"127.0.0.1","inbound":[{"port":15001}],"transparentProxying":{"redirectPortOutbound":15001}}`,
			"networking.transparentProxying.redirectPortOutbound"},
		"an egress where connections are redirected to": {
			`{"address":"127.0.0.1","listeners":[{"type":"ZoneEgress","port":15001}],"transparentProxying":{"redirectPortOutbound":15001}}`,
			"networking.transparentProxying.redirectPortOutbound"},
		"an outbound where connections of IPv6 are redirected to": {
			`{"address":"10.0.0.1","inbound":[{"port":80}],"outbound":[{"port":15001,"address":"0::1","backendRef":{"kind":"MeshService","name":"a"}}],"transparentProxying":{"redirectPortOutbound":15001,"ipFamilyMode":"DualStack"}}`,
			"networking.transparentProxying.redirectPortOutbound"},
		"an inbound where what comes in is redirected to": {
			`{"address":"10.0.0.1","inbound":[{"port":15006}],"transparentProxying":{"redirectPortInbound":15006}}`,
			"networking.transparentProxying.redirectPortInbound"},
		"one port for both directions": {
			`{"address":"10.0.0.1","inbound":[{"port":80}],"transparentProxying":{"redirectPortInbound":15001,"redirectPortOutbound":15001}}`,
			"networking.transparentProxying.redirectPortInbound"},
		"an outbound where what comes in is redirected to": {
			`{"address":"10.0.0.1","inbound":[{"port":80}],"outbound":[{"port":15006,"backendRef":{"kind":"MeshService","name":"a"}}],"transparentProxying":{"redirectPortInbound":15006}}`,
			"networking.transparentProxying.redirectPortInbound"},
		"captured, on every address": {
			`{"address":"10.0.0.1","inbound":[{"port":80,"address":"0.0.0.0","serviceAddress":"127.0.0.1","servicePort":81}],"transparentProxying":{"redirectPortInbound":15006}}`,
			"networking.inbound[0].address"},
		"others": {
			`{"address":"10.0.0.1","inbound":[{"port":80},{"port":80,"address":"10.0.0.2"},{"port":15001}],"listeners":[{"type":"ZoneEgress","port":81}],"outbound":[{"port":15001,"address":"::1","backendRef":{"kind":"MeshService","name":"a"}}],"transparentProxying":{"redirectPortOutbound":15001}}`,
			""},
	} {
		spec, err := NewSpec(TypeDataplane, []byte(`{"networking":`+tt.networking+`}`))
		if err != nil {
			t.Fatal(about, err)
		}
		home := Home{Zone: "zone-1"}
		r := &Resource{Key: Key{Type: TypeDataplane, Mesh: "default", Name: "d"}, Spec: spec}
		r.Labels = home.ComputedLabels(r)
		switch err = Validate(r, home); {
		case tt.field == "" && err != nil:
			t.Errorf("%s: %v", about, err)
		case tt.field != "" && (err == nil || !strings.Contains(err.Error(), tt.field)):
			t.Errorf("%s: %v, want a problem of %s", about, err, tt.field)
		}
	}
}
