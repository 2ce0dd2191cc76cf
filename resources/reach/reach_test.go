package reach

import (
	"net/netip"
	"testing"
)

func TestWhereProxiesMayBeLed(t *testing.T) {
	t.Parallel()
	const allowed, ofItsOwn, never = 0, 1, 2 // to everybody, to the proxy's owner, to nobody
	for host, want := range map[string]int{
		"10.0.0.1": allowed, "::ffff:10.0.0.1": allowed, "64:ff9b::a00:1": allowed, "2001:db8::1": allowed, "168.63.129.17": allowed,
		"127.0.0.1": ofItsOwn, "127.8.9.1": ofItsOwn, "::1": ofItsOwn, "::ffff:127.0.0.1": ofItsOwn, "64:ff9b::7f00:1": ofItsOwn,
		"169.254.169.254": never, "::ffff:169.254.169.254": never, "64:ff9b::a9fe:a9fe": never, "fe80::1": never, "0.0.0.0": never,
		"0.1.2.3": never, "::": never, "224.0.0.1": never, "ff02::1": never, "fd00:ec2::254": never, "fd20:ce::254": never,
		"168.63.129.16": never, "100.100.100.200": never, "::ffff:100.100.100.200": never, "64:ff9b::6464:64c8": never,
		"64:ff9b::a83f:8110": never, "fe80::1%eth0": never,
	} {
		at := netip.MustParseAddr(host)
		if why := NoApplication(at); (why != "") != (want == never) {
			t.Errorf("%s: no application is there: %q", host, why)
		}
		if why := NoDestination(host); (why != "") != (want != allowed) {
			t.Errorf("%s: is no destination: %q", host, why)
		}
	}
	for name, mayBeHere := range map[string]bool{
		"collector.example.com": false, "a.b": false, "a.b.": false, "localhost": true, "LOCALHOST": true, "localhost.": true,
		"x.localhost": true, "collector": true, "127.1": true, "0x7f.1": true, "2130706433": true, "0x7f000001": true, "": true,
		".": true, "a.": true, "a..": true, "a.1": true,
	} {
		if why := NoDestination(name); (why != "") != mayBeHere {
			t.Errorf("%q: %q", name, why)
		}
	}
}
