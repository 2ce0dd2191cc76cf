package xds

import "testing"

// TestAddressesThatEnvoyDoesNotTake: an address with a zone is no endpoint, whoever says it: Envoy refuses one of which
// it has no interface, and all other endpoints that come with it.
func TestAddressesThatEnvoyDoesNotTake(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"192.0.2.1": true, "2001:db8::1": true, "::ffff:192.0.2.1": true, "fe80::1": true,
		"fe80::1%evil": false, "fe80::1%1": false, "2001:db8::1%": false, "0.0.0.0": false,
		"ingress.example": false, "": false,
	} {
		if got := (endpoint{address, 80}).dialable(); got != want {
			t.Errorf("%q: %v", address, got)
		}
		if isIP(address) && !want && address != "0.0.0.0" {
			t.Errorf("%q is taken for an IP address", address)
		}
	}
}
