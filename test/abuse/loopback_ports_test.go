package abuse

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/zone"
)

// TestNothingIsLocalOverTLS sends requests without a credential to the TLS port of the API, from this machine. However
// they are written, they are nobody's; with a token, a request that is well-formed is served.
func TestNothingIsLocalOverTLS(t *testing.T) {
	t.Parallel()
	s := newWorld(t).global
	address := strings.TrimPrefix(s.url, "https://")
	ask := func(lines ...string) int { return rawTLS(t, s, address, lines...) }
	get := []string{"GET /zones HTTP/1.1", "Host: localhost"}
	for name, lines := range map[string][]string{
		"by itself":  get,
		"a full URL": {"GET http://localhost/zones HTTP/1.1", "Host: localhost"},
		"HTTP/1.0":   {"GET /zones HTTP/1.0", "Host: localhost"},
		"from this machine": append(get, "X-Forwarded-For: 127.0.0.1", "X-Real-IP: 127.0.0.1",
			"Forwarded: for=127.0.0.1"),
		"as its proxy knows it": append(get, "X-Forwarded-Proto: http", "X-Envoy-Internal: true",
			"X-Remote-User: mesh-system:admin"),
		"a certificate in a header": append(get, "X-Forwarded-Client-Cert: Subject=\"CN=root\"", "X-SSL-Client-Cert: root"),
		"an upgrade to HTTP/2": append(get, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c",
			"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"),
		"an upgrade to WebSocket": append(get, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="),
		"PROXY, version 1": append([]string{"PROXY TCP4 127.0.0.1 127.0.0.1 4000 5682"}, get...),
	} {
		if got := ask(lines...); got != http.StatusUnauthorized && got != http.StatusBadRequest {
			t.Errorf("%s: %d, want 401 or 400", name, got)
		}
	}
	token := "Authorization: Bearer " + issue(t, s, "root", []string{"mesh-system:admin"}, time.Hour)
	if got := ask(append(get, token)...); got != http.StatusOK {
		t.Errorf("with a token: %d", got)
	}
}

// rawTLS is raw over TLS.
func rawTLS(t *testing.T, s *aServer, address string, lines ...string) int {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: attemptTimeout}, "tcp", address, s.tls())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(attemptTimeout))
	if _, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		return 0
	}
	return statusOf(conn)
}

// forwardedStreams are metadata of streams that a proxy on the server's machine passes on.
var forwardedStreams = map[string][]string{
	"a stranger's address":      {"x-forwarded-for", "198.51.100.7"},
	"a chain of addresses":      {"x-forwarded-for", "127.0.0.1, 127.0.0.1"},
	"two addresses":             {"x-forwarded-for", "127.0.0.1", "x-forwarded-for", "127.0.0.1"},
	"an address that is empty":  {"x-forwarded-for", ""},
	"a scheme":                  {"x-forwarded-proto", "http"},
	"Forwarded":                 {"forwarded", "for=127.0.0.1"},
	"Via":                       {"via", "1.1 front"},
	"X-Real-IP":                 {"x-real-ip", "127.0.0.1"},
	"the timeout of an Envoy":   {"x-envoy-expected-rq-timeout-ms", "15000"},
	"an external address":       {"x-envoy-external-address", "198.51.100.7"},
	"CF-Connecting-IP":          {"cf-connecting-ip", "198.51.100.7"},
	"a header of another year":  {"x-forwarder-of-2030", "x"},
	"a certificate in a header": {"x-forwarded-client-cert", "URI=spiffe://default.zone-1.mesh.local/ns/x/sa/x"},
}

// TestForwardedStreamsAreNotLocal opens streams without a credential, as they come through a proxy. A zone that trusts
// loopback refuses them and serves an Envoy of this machine. KDS serves nobody without a credential.
func TestForwardedStreamsAreNotLocal(t *testing.T) {
	t.Parallel()
	z := startZoneWith(t, func(c *zone.Config) { c.XDSRequireCredentials = false })
	if _, err := z.admin.ApplyDocuments(t.Context(), []byte(proxiesOfTheTable), "application/yaml"); err != nil {
		t.Fatal(err)
	}
	g := newWorld(t).global
	xds := port{z.addresses["xds"], insecure.NewCredentials()}
	kds := port{g.addresses["kds"], credentials.NewTLS(g.tls())}
	const ads = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
	const sync = "/kuma.mesh.v1alpha1.KDSSyncService/GlobalToZoneSync"
	for name, shown := range forwardedStreams {
		if got := open(t, xds, ads, shown...); got != codes.Unauthenticated {
			t.Errorf("xDS, %s: %v, want Unauthenticated", name, got)
		}
		if got := open(t, kds, sync, append([]string{"client-id", "zone-9"}, shown...)...); got != codes.Unauthenticated {
			t.Errorf("KDS, %s: %v, want Unauthenticated", name, got)
		}
	}
	for _, own := range [][]string{nil, {"x-envoy-internal", "true", "x-forwarded-for", "127.0.0.1"},
		{"x-envoy-internal", "true", "x-forwarded-for", "::1"}} {
		if got := open(t, xds, ads, own...); got != codes.OK {
			t.Errorf("an Envoy of this machine with %q: %v", own, got)
		}
	}
}

type port struct {
	address string
	with    credentials.TransportCredentials
}

// open opens a stream with metadata on a connection of its own, because a server may close one that proved nothing, and
// returns how its first answer ended.
func open(t *testing.T, to port, method string, shown ...string) codes.Code {
	t.Helper()
	conn, err := grpc.NewClient(to.address, grpc.WithTransportCredentials(to.with))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), shown...), attemptTimeout)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return status.Code(err)
	}
	_ = stream.SendMsg(&discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "default.shop"},
		TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster"})
	return status.Code(stream.RecvMsg(&discovery.DeltaDiscoveryResponse{}))
}
