package xds

import (
	"context"
	"net"
	"net/netip"
	"strings"

	"google.golang.org/grpc/metadata"
)

// ordinary lists the metadata that a gRPC client itself sends when it opens a stream. A list of what proxies add would
// never be complete, so any other name ends the trust in loopback, as with the HTTP API. Names are in lower case.
var ordinary = map[string]bool{
	":authority": true, "accept-encoding": true, "content-type": true, "te": true, "user-agent": true,
	"baggage": true, "traceparent": true, "tracestate": true, "x-request-id": true,
	"x-envoy-internal": true, // every Envoy sends it on its own streams
}

// forwardedBy returns the name of a metadata entry which shows that ctx's stream may have come through a proxy; empty
// if there is none. An Envoy names one address of its own machine in x-forwarded-for, and a proxy adds its client's
// address.
func forwardedBy(ctx context.Context) string {
	all, _ := metadata.FromIncomingContext(ctx)
	for name, values := range all {
		switch {
		case ordinary[name], strings.HasPrefix(name, "grpc-"):
		case name == "x-forwarded-for" && len(values) == 1 && ofThisMachine(values[0]):
		default:
			return name
		}
	}
	return ""
}

// ofThisMachine reports whether text is a single address of this machine.
func ofThisMachine(text string) bool {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return false
	}
	if address.IsLoopback() {
		return true
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range own {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Unmap() == address.Unmap() {
			return true
		}
	}
	return false
}
