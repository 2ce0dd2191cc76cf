package resources

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/causeway-mesh/causeway/resources/reach"
)

// TestNeverPassed checks that no spelling of loopback, link-local or cloud metadata addresses is a match, and that
// neighbouring addresses are.
func TestNeverPassed(t *testing.T) {
	t.Parallel()
	for value, never := range map[string]bool{
		"127.0.0.1": true, "127.255.0.9": true, "0.0.0.0": true, "0.1.2.3": true, "169.254.169.254": true, "169.254.170.23": true,
		"224.0.0.1": true, "::1": true, "::": true, "fe80::1": true, "ff02::1": true, "::ffff:169.254.169.254": true,
		"::ffff:7f00:1": true, "::ffff:10.0.0.1": false, "64:ff9b::a9fe:a9fe": true, "64:ff9b::7f00:1": true, "64:ff9b::a00:1": false,
		"fd00:ec2::254": true, "fd00:ec2::23": true, "fd20:ce::254": true, "168.63.129.16": true, "100.100.100.200": true,
		"10.0.0.1": false, "192.0.2.1": false, "2001:db8::1": false, "168.63.129.17": false, "fd00:ec3::254": false,
	} {
		problem, _ := (&PassthroughMatch{Type: PassthroughIP, Value: value}).Problem()
		if (problem != "") != never {
			t.Errorf("%s: problem %q", value, problem)
		}
		at := netip.MustParseAddr(value)
		within := slices.ContainsFunc(reach.NeverPassed(), func(p netip.Prefix) bool { return p.Contains(at) || p.Contains(at.Unmap()) })
		if never && !within {
			t.Errorf("%s is in none of the ranges that proxies refuse", value)
		}
	}
	for value, never := range map[string]bool{
		"127.0.0.0/9": true, "169.254.169.254/32": true, "::ffff:0:0/100": true, "fd00:ec2::/48": true, "0.0.0.0/0": false,
		"169.0.0.0/8": false, "fd00::/8": false, "10.0.0.0/8": false,
	} {
		if problem, _ := (&PassthroughMatch{Type: PassthroughCIDR, Value: value}).Problem(); (problem != "") != never {
			t.Errorf("%s: problem %q", value, problem)
		}
	}
}
