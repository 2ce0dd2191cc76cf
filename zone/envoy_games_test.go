package zone_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// behind is an application that notes each request it is sent, whatever the method, and takes every offer to change the
// protocol.
type behind struct {
	mu   sync.Mutex
	seen []string // guarded by mu
}

func (b *behind) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	trailers := ""
	for name := range r.Trailer {
		trailers += " trailer:" + name
	}
	b.mu.Lock()
	b.seen = append(b.seen, r.Method+" "+r.RequestURI+trailers+" of "+r.Host)
	b.mu.Unlock()
	if r.Header.Get("Upgrade") != "" {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n",
			r.Header.Get("Upgrade"))
		_ = rw.Flush()
		_, _ = io.Copy(io.Discard, rw)
	}
}

func (b *behind) requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen)
}

// gamesOverHTTP1 are what a client writes on a connection over HTTP/1.1, who may ask for anything but /admin and may
// not DELETE. None of it reaches the application as either.
var gamesOverHTTP1 = map[string]string{
	"connect":                         "CONNECT backend:80 HTTP/1.1\r\nHost: backend:80\r\n\r\nGET /admin HTTP/1.1\r\nHost: backend\r\n\r\n",
	"connect to a path":               "CONNECT /admin HTTP/1.1\r\nHost: backend\r\n\r\n",
	"websocket to what is denied":     "GET /admin HTTP/1.1\r\nHost: backend\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	"another protocol":                "GET /admin HTTP/1.1\r\nHost: backend\r\nConnection: Upgrade\r\nUpgrade: spdy/3\r\n\r\n",
	"h2c":                             "GET /hello HTTP/1.1\r\nHost: backend\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\nGET /admin HTTP/1.1\r\nHost: backend\r\n\r\n",
	"http/1.0":                        "GET /admin HTTP/1.0\r\n\r\n",
	"http/0.9":                        "GET /admin\r\n\r\n",
	"http/1.2":                        "GET /admin HTTP/1.2\r\nHost: backend\r\n\r\n",
	"absolute form":                   "GET http://backend/admin HTTP/1.1\r\nHost: backend\r\n\r\n",
	"absolute form, another case":     "GET HTTP://backend/admin HTTP/1.1\r\nHost: backend\r\n\r\n",
	"absolute form and user":          "GET http://a@backend/admin HTTP/1.1\r\nHost: backend\r\n\r\n",
	"asterisk":                        "OPTIONS * HTTP/1.1\r\nHost: backend\r\n\r\nGET /admin HTTP/1.1\r\nHost: backend\r\n\r\n",
	"length and chunks":               "POST /hello HTTP/1.1\r\nHost: backend\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nHost: backend\r\n\r\n",
	"two lengths":                     "POST /hello HTTP/1.1\r\nHost: backend\r\nContent-Length: 0\r\nContent-Length: 41\r\n\r\nGET /admin HTTP/1.1\r\nHost: backend\r\n\r\n",
	"a length with a sign":            "POST /hello HTTP/1.1\r\nHost: backend\r\nContent-Length: +0\r\n\r\nGET /admin HTTP/1.1\r\nHost: backend\r\n\r\n",
	"an encoding that is no encoding": "POST /hello HTTP/1.1\r\nHost: backend\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nHost: backend\r\n\r\n",
	"chunks twice":                    "POST /hello HTTP/1.1\r\nHost: backend\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nHost: backend\r\n\r\n",
	"chunks with a tab":               "POST /hello HTTP/1.1\r\nHost: backend\r\nTransfer-Encoding:\tchunked\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nHost: backend\r\n\r\n",
	"a space before the colon":        "POST /hello HTTP/1.1\r\nHost: backend\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nHost: backend\r\n\r\n",
	"a folded line":                   "GET /hello HTTP/1.1\r\nHost: backend\r\nX: a\r\n GET /admin HTTP/1.1\r\n\r\n",
	"lines that end in LF":            "GET /admin HTTP/1.1\nHost: backend\n\n",
	"lines that end in CR":            "GET /hello HTTP/1.1\r\nHost: backend\r\nX: a\r\rGET /admin HTTP/1.1\rHost: backend\r\r",
	"an extension of a chunk":         "POST /hello HTTP/1.1\r\nHost: backend\r\nTransfer-Encoding: chunked\r\n\r\n0;\nGET /admin HTTP/1.1\r\nHost: backend\r\n\r\n\r\n",
	"a chunk that is too long":        "POST /hello HTTP/1.1\r\nHost: backend\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\nGET /admin HTTP/1.1\r\n\r\n",
	"a method in lower case":          "delete /hello HTTP/1.1\r\nHost: backend\r\n\r\n",
	"a method with a tab":             "DELETE\t/hello HTTP/1.1\r\nHost: backend\r\n\r\n",
	"a method that is overridden":     "POST /hello HTTP/1.1\r\nHost: backend\r\nX-HTTP-Method-Override: DELETE\r\nContent-Length: 0\r\n\r\nDELETE /hello HTTP/1.1\r\nHost: backend\r\n\r\n",
	"pipelined":                       "GET /hello HTTP/1.1\r\nHost: backend\r\n\r\nGET /admin HTTP/1.1\r\nHost: backend\r\n\r\nDELETE /hello HTTP/1.1\r\nHost: backend\r\n\r\n",
	"after 100 Continue":              "POST /admin HTTP/1.1\r\nHost: backend\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
	"gRPC-web":                        "POST /admin HTTP/1.1\r\nHost: backend\r\nContent-Type: application/grpc-web+proto\r\nContent-Length: 5\r\n\r\n\x00\x00\x00\x00\x00",
	"trailers":                        "POST /hello HTTP/1.1\r\nHost: backend\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\nTrailer: X-Envoy-Original-Path, :path\r\n\r\n0\r\n:path: /admin\r\nX-HTTP-Method-Override: DELETE\r\n\r\nGET /admin HTTP/1.1\r\nHost: backend\r\n\r\n",
	"two hosts":                       "GET /admin HTTP/1.1\r\nHost: backend\r\nHost: elsewhere\r\n\r\n",
	"a host with a path":              "GET /hello HTTP/1.1\r\nHost: backend/admin?\r\n\r\n",
	"NUL":                             "GET /admin\x00/hello HTTP/1.1\r\nHost: backend\r\n\r\n",
	"a backslash":                     "GET \\admin HTTP/1.1\r\nHost: backend\r\n\r\n",
	"no slash":                        "GET admin HTTP/1.1\r\nHost: backend\r\n\r\n",
}

// gamesOverHTTP2 are header blocks, some with a body, of the same client over HTTP/2.
var gamesOverHTTP2 = map[string]struct {
	fields [][2]string
	body   string
}{
	"connect": {[][2]string{{":method", "CONNECT"}, {":authority", "backend:80"}},
		"GET /admin HTTP/1.1\r\nHost: backend\r\n\r\n"},
	"extended connect": {[][2]string{{":method", "CONNECT"}, {":protocol", "websocket"},
		{":scheme", "https"}, {":authority", "backend"}, {":path", "/admin"}}, ""},
	"extended connect, connect-udp": {[][2]string{{":method", "CONNECT"}, {":protocol", "connect-udp"},
		{":scheme", "https"}, {":authority", "backend"}, {":path", "/admin"}}, ""},
	"extended connect, a protocol": {[][2]string{{":method", "CONNECT"}, {":protocol", "h2c"}, {":scheme", "https"},
		{":authority", "backend"}, {":path", "/hello"}}, "GET /admin HTTP/1.1\r\nHost: backend\r\n\r\n"},
	"two paths": {[][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "backend"},
		{":path", "/hello"}, {":path", "/admin"}}, ""},
	"two methods": {[][2]string{{":method", "GET"}, {":method", "DELETE"}, {":scheme", "https"},
		{":authority", "backend"}, {":path", "/hello"}}, ""},
	"a path after the headers": {[][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "backend"},
		{"x-a", "b"}, {":path", "/admin"}}, ""},
	"an absolute path": {[][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "backend"},
		{":path", "https://backend/admin"}}, ""},
	"a path with a line": {[][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "backend"},
		{":path", "/hello HTTP/1.1\r\nHost: backend\r\n\r\nGET /admin"}}, ""},
	"a method with a line": {[][2]string{{":method", "GET /admin HTTP/1.1\r\nHost: backend\r\n\r\nGET"},
		{":scheme", "https"}, {":authority", "backend"}, {":path", "/hello"}}, ""},
	"a header with a line": {[][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "backend"},
		{":path", "/hello"}, {"x-a", "b\r\n\r\nGET /admin HTTP/1.1\r\nHost: backend\r\n\r\n"}}, ""},
	"an authority with a line": {[][2]string{{":method", "GET"}, {":scheme", "https"},
		{":authority", "backend\r\n\r\nGET /admin HTTP/1.1"}, {":path", "/hello"}}, ""},
	"chunks": {[][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "backend"},
		{":path", "/hello"}, {"transfer-encoding", "chunked"}}, "0\r\n\r\nGET /admin HTTP/1.1\r\nHost: backend\r\n\r\n"},
	"a length that is too short": {[][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "backend"},
		{":path", "/hello"}, {"content-length", "0"}}, "GET /admin HTTP/1.1\r\nHost: backend\r\n\r\n"},
	"two lengths": {[][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "backend"},
		{":path", "/hello"}, {"content-length", "0"}, {"content-length", "41"}},
		"GET /admin HTTP/1.1\r\nHost: backend\r\n\r\n"},
	"an upgrade": {[][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "backend"},
		{":path", "/admin"}, {"connection", "upgrade"}, {"upgrade", "websocket"}}, ""},
	"names in upper case": {[][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "backend"},
		{":Path", "/admin"}, {":path", "/hello"}}, ""},
	"no path": {[][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "backend/admin"}}, ""},
	"a scheme with a path": {[][2]string{{":method", "GET"}, {":scheme", "https://backend/admin?"},
		{":authority", "backend"}, {":path", "/hello"}}, ""},
	"a host besides": {[][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "backend"},
		{":path", "/admin"}, {"host", "elsewhere"}}, ""},
}

// TestGamesOfProtocols: whatever a client makes of HTTP, what it is denied does not reach the application, neither by
// path nor by method; what it is allowed does.
func TestGamesOfProtocols(t *testing.T) {
	t.Parallel()
	for _, form := range []rbac.Form{rbac.List, rbac.Compiled} {
		t.Run(string(form), func(t *testing.T) { gamesOfProtocols(t, form) })
	}
}

func gamesOfProtocols(t *testing.T, form rbac.Form) {
	w := newWorldOf(t, form)
	app := &behind{}
	service := httptest.NewServer(app)
	t.Cleanup(service.Close)
	port := freePort(t)
	w.httpDataplane("backend", port, service.Listener.Addr().(*net.TCPAddr).Port)
	w.apply(`{type: MeshTrafficPermission, mesh: default, name: all, spec: {default: {
  deny: [{path: {type: Prefix, value: /admin}}, {method: DELETE}], allow: [{spiffeId: {type: Prefix, value: "spiffe://"}}]}}}`)
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	certificate := w.certificate("client")
	good := httpClient(certificate)
	eventually(t, "the client to be allowed", func() bool { return status(good, port) == http.StatusOK })
	playGames(t, certificate, port)
	eventually(t, "the client to be allowed after them", func() bool { return status(good, port) == http.StatusOK })
	sawOnlyAllowed(t, app)
	// What is allowed changes protocols as before.
	if got := writtenAs1(t, certificate, port, "GET /hello HTTP/1.1\r\nHost: backend\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); !strings.HasPrefix(got, "101") {
		t.Errorf("a websocket that is allowed: %s", got)
	}
}

// playGames plays all games over both versions of HTTP at once, and logs what came of them. The host says which game a
// request is of.
func playGames(t *testing.T, certificate *tls.Certificate, port int) {
	t.Helper()
	var all sync.WaitGroup
	hosts := strings.NewReplacer(" ", "-", ",", "", "/", "-")
	of := func(name, text string) string { return strings.ReplaceAll(text, "backend", hosts.Replace(name)) }
	for name, text := range gamesOverHTTP1 {
		all.Go(func() { t.Logf("http/1.1, %s: %s", name, writtenAs1(t, certificate, port, of(name+"-1", text))) })
	}
	for name, game := range gamesOverHTTP2 {
		all.Go(func() {
			fields := slices.Clone(game.fields)
			for i := range fields {
				fields[i][1] = of(name+"-2", fields[i][1])
			}
			t.Logf("http/2, %s: %s", name, writtenAs2(t, certificate, port, fields, of(name+"-2", game.body)))
		})
	}
	all.Wait()
}

// sawOnlyAllowed checks that an application was sent what is allowed, and nothing else.
func sawOnlyAllowed(t *testing.T, app *behind) {
	t.Helper()
	seen := app.requests()
	if !slices.Contains(seen, "GET /hello of pipelined-1") {
		t.Errorf("of what is allowed, the application saw %q only", seen)
	}
	for _, request := range seen {
		method, target, _ := strings.Cut(request, " ")
		if strings.Contains(strings.ToLower(target), "admin") || strings.EqualFold(method, "DELETE") {
			t.Errorf("the application was sent %q", request)
		}
	}
}

// writtenAs1 writes bytes on a connection and returns the status lines that come back.
func writtenAs1(t *testing.T, certificate *tls.Certificate, port int, text string) string {
	t.Helper()
	conn := rawDial(t, certificate, port, "http/1.1")
	defer conn.Close()
	_, err := io.WriteString(conn, text)
	must(t, err)
	must(t, conn.SetReadDeadline(time.Now().Add(time.Second))) // what comes later changes no verdict
	var out []string
	for r := bufio.NewReader(conn); ; {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return strings.Join(out, ", ")
		}
		out = append(out, resp.Status)
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return strings.Join(out, ", ")
		}
		_, _ = io.Copy(io.Discard, resp.Body)
	}
}

// writtenAs2 writes a header block as it is, and a body, and returns the status or how the stream ended.
func writtenAs2(t *testing.T, certificate *tls.Certificate, port int, fields [][2]string, body string) string {
	t.Helper()
	conn := rawDial(t, certificate, port, "h2")
	defer conn.Close()
	must(t, conn.SetReadDeadline(time.Now().Add(time.Second)))
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, err := io.WriteString(conn, http2.ClientPreface)
	must(t, err)
	must(t, f.WriteSettings())
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, field := range fields {
		must(t, enc.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
	}
	must(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true,
		EndStream: body == ""}))
	if body != "" {
		_ = f.WriteData(1, true, []byte(body)) // fails where Envoy has closed
	}
	for {
		frame, err := f.ReadFrame()
		var refused http2.StreamError
		switch {
		case errors.As(err, &refused):
			return refused.Error()
		case err != nil:
			return err.Error()
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			return frame.PseudoValue("status")
		case *http2.RSTStreamFrame:
			return frame.ErrCode.String()
		case *http2.GoAwayFrame:
			return frame.ErrCode.String()
		}
	}
}
