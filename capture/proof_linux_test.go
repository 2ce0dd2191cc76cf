package capture_test

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/causeway-mesh/causeway/capture"
)

// TestProof: only the rules lead the port that proves the capture to the proxy, for every other machine, and by both
// families. Without the rules, or without one of them, that is known.
func TestProof(t *testing.T) {
	t.Parallel()
	server, client := newPair(t)
	if server == nil {
		return
	}
	server.serveAll()
	server.serve(proxyUser, ":15021", func(c net.Conn) string { return "ready " + before(c) })
	proof := both
	proof.ProofPort, proof.ProofTo = 15023, 15021
	proof.ExcludeInboundPorts = []capture.Ports{{First: 15021, Last: 15021}}
	proof.ExcludeInboundAddresses = []netip.Prefix{netip.MustParsePrefix(client4 + "/32"), netip.MustParsePrefix(client6 + "/128")}
	refused := func(when string) {
		t.Helper()
		want(t, map[string][2]string{
			when + ", IPv4": {client.hears(0, server4+":15023"), "refused"},
			when + ", IPv6": {client.hears(0, "["+server6+"]:15023"), "refused"},
		})
	}
	refused("without rules")
	server.install(proof)
	want(t, map[string][2]string{
		"IPv4":                        {client.hears(0, server4+":15023"), "ready 10.99.0.1:15023"},
		"another address":             {client.hears(0, server4b+":15023"), "ready 10.99.0.11:15023"},
		"IPv6":                        {client.hears(0, "["+server6+"]:15023"), "ready [fd99::1]:15023"},
		"another port goes by":        {client.hears(0, server4+":8080"), "application"},
		"the application has nothing": {server.hears(applicationUser, server4+":15023"), "refused"},
	})
	is := server.status()
	if is.State != capture.Installed || !slices.ContainsFunc(is.Listeners, func(l capture.Listener) bool {
		return l.For == "proof" && l.Port == 15021 && l.Problem == "" && len(l.Families) > 0
	}) {
		t.Errorf("the status is %+v", is)
	}
	server.install(both)
	want(t, map[string][2]string{"rules without a proof": {client.hears(0, server4+":15023"), "inbound 10.99.0.1:15023"}})
	server.install(proof)
	server.uninstall()
	refused("without rules any more")
}
