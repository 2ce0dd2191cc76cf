package abuse

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// forwarded are headers that mark a request as forwarded, even with an empty value.
var forwarded = []string{
	"Forwarded", "X-Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port",
	"X-Forwarded-Server",
	"X-Forwarded-By", "X-Forwarded-Client-Cert", "X-Forwarded-Prefix", "X-Forwarded-Scheme", "X-Forwarded-User",
	"Forwarded-For", "Forwarded-For-Ip",
	"X-Real-IP", "X-Real-Ip", "X-Client-IP", "Client-IP", "X-Original-For", "X-Original-Host",
	"X-Original-Forwarded-For", "X-Original-URL", "X-Rewrite-URL",
	"X-Originating-IP", "X-Remote-IP", "X-Remote-Addr", "X-Remote-User", "X-Host", "X-Scheme", "X-Proxy-User",
	"Proxy-Client-IP", "WL-Proxy-Client-IP", "Via", "X-Via",
	"CF-Connecting-IP", "CF-Connecting-IPv6", "CF-Ray", "CF-Visitor", "CF-IPCountry", "CDN-Loop", "True-Client-IP",
	"X-Cluster-Client-IP",
	"X-Envoy-External-Address", "X-Envoy-Internal", "X-Envoy-Original-Path", "Fastly-Client-IP", "Fly-Client-IP",
	"DO-Connecting-IP",
	"X-Azure-ClientIP", "X-Azure-SocketIP", "X-AppEngine-User-IP", "X-Amz-Cf-Id", "X-Amzn-Trace-Id",
	"X-Cloud-Trace-Context", "X-ARR-LOG-ID", "X-SSL-Client-Cert",
	"X-ProxyUser-Ip", "X-Varnish", "Surrogate-Capability", "Max-Forwards", "Front-End-Https", "Proxy-Connection",
	"Akamai-Origin-Hop", "X-Forwarder-Of-2030", "X-Request-Id", "X-Correlation-Id",
}

// spellings are the ways to write a name.
var spellings = map[string]func(string) string{
	"as it is": func(s string) string { return s }, "in upper case": strings.ToUpper, "in lower case": strings.ToLower,
	"with underscores": func(s string) string { return strings.ReplaceAll(s, "-", "_") },
	"with dots":        func(s string) string { return strings.ReplaceAll(s, "-", ".") },
}

// TestForwardingHeaders checks that any of these headers, in any spelling and number and without a value, ends the
// trust in loopback, and nothing else.
func TestForwardingHeaders(t *testing.T) {
	t.Parallel()
	zone := startZone(t)
	address := strings.TrimPrefix(zone.url, "http://")
	token := "Authorization: Bearer " + issue(t, zone, "root", []string{"mesh-system:admin"}, time.Hour)
	ask := func(lines ...string) int {
		return raw(t, address, append([]string{"GET /zones HTTP/1.1", "Host: localhost"}, lines...)...)
	}
	for _, name := range forwarded {
		for how, spelled := range spellings {
			name := spelled(name)
			for _, lines := range [][]string{{name + ": 192.0.2.1"}, {name + ":"}, {name + ":", name + ": 127.0.0.1"}} {
				if got := ask(lines...); got != http.StatusUnauthorized {
					t.Errorf("%q %s: %d, want 401", lines, how, got)
				}
			}
		}
		if got := ask(name+": 192.0.2.1", token); got != http.StatusOK {
			t.Errorf("%s with a token: %d", name, got)
		}
	}
	own := []string{"User-Agent: curl/8", "Accept: */*", "Accept-Encoding: gzip", "Connection: keep-alive",
		"Cache-Control: no-cache", "Sec-Fetch-Site: none", "Traceparent: 00-1-1-01"}
	if got := ask(own...); got != http.StatusOK {
		t.Errorf("what a program on this machine sends: %d", got)
	}
}

// TestWaysAroundLoopback sends requests that another user's program may have forwarded, without a forwarding header.
func TestWaysAroundLoopback(t *testing.T) {
	t.Parallel()
	zone := startZone(t)
	address := strings.TrimPrefix(zone.url, "http://")
	for name, c := range map[string]struct {
		want  int
		lines []string
	}{
		"by itself":               {200, []string{"GET /zones HTTP/1.1", "Host: localhost"}},
		"another Host":            {403, []string{"GET /zones HTTP/1.1", "Host: causeway.example"}},
		"an empty Host":           {403, []string{"GET /zones HTTP/1.1", "Host:"}},
		"two Hosts":               {400, []string{"GET /zones HTTP/1.1", "Host: localhost", "Host: causeway.example"}},
		"no Host":                 {400, []string{"GET /zones HTTP/1.1"}},
		"a Host that is not ours": {403, []string{"GET /zones HTTP/1.1", "Host: 0.0.0.0"}},
		"a Host with a user":      {400, []string{"GET /zones HTTP/1.1", "Host: localhost@causeway.example"}},
		"a number for a Host":     {403, []string{"GET /zones HTTP/1.1", "Host: 2130706433"}},
		"a full URL":              {401, []string{"GET http://localhost/zones HTTP/1.1", "Host: causeway.example"}},
		"another whole URL":       {403, []string{"GET http://causeway.example/zones HTTP/1.1", "Host: localhost"}},
		"HTTP/1.0":                {401, []string{"GET /zones HTTP/1.0", "Host: localhost"}},
		"HTTP/1.2":                {401, []string{"GET /zones HTTP/1.2", "Host: localhost"}},
		"a tunnel":                {401, []string{"CONNECT localhost:5681 HTTP/1.1", "Host: localhost"}},
		"headers that are taken out": {401, []string{"GET /zones HTTP/1.1", "Host: localhost",
			"Connection: X-Forwarded-For"}},
		"a trailer": {401, []string{"GET /zones HTTP/1.1", "Host: localhost",
			"Trailer: X-Forwarded-For", "Transfer-Encoding: chunked", "", "0", "X-Forwarded-For: 192.0.2.1"}},
		"HTTP/2": {415, []string{"PRI * HTTP/2.0", "", "SM", "", ""}}, // read as one request
		"PROXY, version 1": {400, []string{"PROXY TCP4 192.0.2.1 127.0.0.1 4000 5681", "GET /zones HTTP/1.1",
			"Host: localhost"}},
		"PROXY, version 1, unknown": {400, []string{"PROXY UNKNOWN", "GET /zones HTTP/1.1", "Host: localhost"}},
		"PROXY, version 2": {400, []string{"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00GET /zones HTTP/1.1",
			"Host: localhost"}},
		"folded headers": {400, []string{"GET /zones HTTP/1.1", "Host: localhost", "X-Forwarded-For",
			" : 192.0.2.1"}},
		"a space before the colon": {400, []string{"GET /zones HTTP/1.1", "Host: localhost",
			"X-Forwarded-For : 192.0.2.1"}},
		"an upgrade to HTTP/2": {401, []string{"GET /zones HTTP/1.1", "Host: localhost",
			"Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"}},
		"an upgrade to WebSocket": {401, []string{"GET /zones HTTP/1.1", "Host: localhost", "Connection: Upgrade",
			"Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}},
		"a question": {200, []string{"POST /_can-i HTTP/1.1", "Host: localhost",
			"Content-Type: application/json", "Content-Length: 29", "", "{\"verb\":\"read\",\"type\":\"Zone\"}"}},
		"a question in chunks": {200, []string{"POST /_can-i HTTP/1.1", "Host: localhost",
			"Content-Type: application/json", "Transfer-Encoding: chunked", "", "1d",
			"{\"verb\":\"read\",\"type\":\"Zone\"}", "0"}},
		"two lengths": {400, []string{"POST /_can-i HTTP/1.1", "Host: localhost",
			"Content-Type: application/json", "Content-Length: 29", "Content-Length: 30", "",
			"{\"verb\":\"read\",\"type\":\"Zone\"}"}},
		"a list of lengths": {400, []string{"POST /_can-i HTTP/1.1", "Host: localhost",
			"Content-Type: application/json", "Content-Length: 29, 30", "", "{\"verb\":\"read\",\"type\":\"Zone\"}"}},
		"a length with a sign": {400, []string{"POST /_can-i HTTP/1.1", "Host: localhost",
			"Content-Type: application/json", "Content-Length: +29", "", "{\"verb\":\"read\",\"type\":\"Zone\"}"}},
		"a length beside chunks": {200, []string{"POST /_can-i HTTP/1.1", "Host: localhost",
			"Content-Type: application/json", "Content-Length: 29", "Transfer-Encoding: chunked", "", "1d",
			"{\"verb\":\"read\",\"type\":\"Zone\"}", "0"}},
		"chunks twice": {501, []string{"POST /_can-i HTTP/1.1", "Host: localhost",
			"Content-Type: application/json", "Transfer-Encoding: chunked, chunked", "", "1d",
			"{\"verb\":\"read\",\"type\":\"Zone\"}", "0"}},
		"chunks in two lines": {501, []string{"POST /_can-i HTTP/1.1", "Host: localhost",
			"Content-Type: application/json", "Transfer-Encoding: chunked", "Transfer-Encoding: identity", "", "1d",
			"{\"verb\":\"read\",\"type\":\"Zone\"}", "0"}},
		"another transfer encoding": {501, []string{"POST /_can-i HTTP/1.1", "Host: localhost",
			"Content-Type: application/json", "Transfer-Encoding: identity", "Content-Length: 29", "",
			"{\"verb\":\"read\",\"type\":\"Zone\"}"}},
		"a tab before chunked": {400, []string{"POST /_can-i HTTP/1.1", "Host: localhost",
			"Content-Type: application/json", "Transfer-Encoding: \x0bchunked", "", "0"}},
		"gRPC": {415, []string{"POST /_batch HTTP/1.1", "Host: localhost",
			"Content-Type: application/grpc", "Content-Length: 2", "", "{}"}},
		"gRPC-Web": {415, []string{"POST /_batch HTTP/1.1", "Host: localhost",
			"Content-Type: application/grpc-web+proto", "Content-Length: 2", "", "{}"}},
		"gRPC-Web as text": {401, []string{"GET /zones HTTP/1.1", "Host: localhost", "X-Grpc-Web: 1"}},
		"another method by a header": {401, []string{"GET /zones HTTP/1.1", "Host: localhost",
			"X-HTTP-Method-Override: DELETE"}},
		"TRACE":                      {405, []string{"TRACE /zones HTTP/1.1", "Host: localhost"}},
		"a method in lower case":     {405, []string{"get /zones HTTP/1.1", "Host: localhost"}},
		"a Host with a point":        {403, []string{"GET /zones HTTP/1.1", "Host: localhost."}},
		"a Host with another's tail": {403, []string{"GET /zones HTTP/1.1", "Host: 127.0.0.1.causeway.example"}},
		"a short Host":               {403, []string{"GET /zones HTTP/1.1", "Host: 127.1"}},
		"a list of Hosts":            {400, []string{"GET /zones HTTP/1.1", "Host: localhost, causeway.example"}},
		"a Host with a path":         {400, []string{"GET /zones HTTP/1.1", "Host: localhost/causeway.example"}},
		"a Host in brackets":         {403, []string{"GET /zones HTTP/1.1", "Host: [::ffff:192.0.2.1]"}},
		"two slashes":                {307, []string{"GET //causeway.example/zones HTTP/1.1", "Host: localhost"}},
		"a user in a full URL": {403, []string{"GET http://localhost@causeway.example/zones HTTP/1.1",
			"Host: localhost"}},
		"a fragment":         {307, []string{"GET /zones#/../keys HTTP/1.1", "Host: localhost"}},
		"a Host of spaces":   {400, []string{"GET /zones HTTP/1.1", "Host: local host"}},
		"a zero in a header": {400, []string{"GET /zones HTTP/1.1", "Host: localhost", "Accept: a\x00b"}},
		"a lonely return": {400, []string{"GET /zones HTTP/1.1", "Host: localhost",
			"Accept: a\rX-Forwarded-For: 192.0.2.1"}},
		"a token in another header": {401, []string{"GET /zones HTTP/1.1", "Host: localhost", "X-Auth-Token: nonsense"}},
		"a token for a proxy": {401, []string{"GET /zones HTTP/1.1", "Host: localhost",
			"Proxy-Authorization: Bearer nonsense"}},
		"a token in the URL":     {401, []string{"GET /zones?access_token=nonsense HTTP/1.1", "Host: localhost"}},
		"an empty Authorization": {401, []string{"GET /zones HTTP/1.1", "Host: localhost", "Authorization:"}},
		"a Bearer of nothing":    {401, []string{"GET /zones HTTP/1.1", "Host: localhost", "Authorization: Bearer "}},
		"another scheme": {401, []string{"GET /zones HTTP/1.1", "Host: localhost",
			"Authorization: Basic cm9vdDpyb290"}},
		"two Authorizations": {401, []string{"GET /zones HTTP/1.1", "Host: localhost", "Authorization:", "Authorization:"}},
	} {
		if got := raw(t, address, c.lines...); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestNothingIsSmuggled sends requests with both a length and chunks, so that a proxy in front and the server may
// disagree about their end. The server must read nothing after the first request.
func TestNothingIsSmuggled(t *testing.T) {
	zone := startZone(t)
	const question = `{"verb":"read","type":"Zone"}`
	ask := "POST /_can-i HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	for name, c := range map[string]struct {
		first   string
		answers int
	}{
		"a length":               {ask + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(question), question), 2},
		"a length beside chunks": {ask + fmt.Sprintf("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(question), question), 1},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(zone.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(attemptTimeout))
		if _, err := io.WriteString(conn,
			c.first+"GET /zones HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(conn)
		if got := strings.Count(string(all), "HTTP/1.1 200"); err != nil || got != c.answers {
			t.Errorf("%s: %d answers, want %d, %v:\n%s", name, got, c.answers, err, all)
		}
	}
}
