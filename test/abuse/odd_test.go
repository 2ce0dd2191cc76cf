package abuse

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/causeway-mesh/causeway/api"
)

// oddPort is a port that receives raw bytes.
type oddPort struct {
	name, on, port string
	tls            bool
	protocol       string // of TLS
}

var oddPorts = []oddPort{
	{"global:api", "global", "api", true, "http/1.1"},
	{"global:kds", "global", "kds", true, "h2"},
	{"global:diag", "global", "diagnostics", false, ""},
	{"zone:api", "zone", "api", false, ""},
	{"zone:xds", "zone", "xds", false, ""},
	{"zone:diag", "zone", "diagnostics", false, ""},
}

// oddPatience is for an answer, or the end; a stranger's time is shorter.
const oddPatience = 20 * time.Second

// oddAtOnce is how many odd connections there are at once.
const oddAtOnce = 64

const plainGet = "GET /who-am-i HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

// oddities are bytes that no client of ours sends. The first two are the twins: the normal answers of each kind of
// port.
var oddities = []struct {
	name  string
	bytes func() []byte
}{
	{"HTTP/1.1", text(plainGet)},
	{"HTTP/2", h2(func(*http2.Framer, *bytes.Buffer) {})},
	{"PROXY v1 before it", text("PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n" + plainGet)},
	{"PROXY v2 before it", text("\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00" + plainGet)},
	{"HTTP/1.0 without a host", text("GET /who-am-i HTTP/1.0\r\n\r\n")},
	{"no host", text("GET /who-am-i HTTP/1.1\r\nConnection: close\r\n\r\n")},
	{"two hosts", text("GET /who-am-i HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n")},
	{"another host", text("GET /who-am-i HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")},
	{"a host with a NUL", text("GET /who-am-i HTTP/1.1\r\nHost: local\x00host\r\nConnection: close\r\n\r\n")},
	{"a full URL", text("GET http://evil.example/who-am-i HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")},
	{"CONNECT", text("CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n")},
	{"upgrade to h2c", text("GET /who-am-i HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")},
	{"upgrade to websocket",
		text("GET /who-am-i HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n")},
	{"a length and chunks", text("POST /_batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n")},
	{"two lengths", text("POST /_batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nContent-Length: 5\r\nConnection: close\r\n\r\n{}{}{")},
	{"chunks in disguise", text("POST /_batch HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\nConnection: close\r\n\r\n0\r\n\r\n")},
	{"a space before a colon",
		text("GET /who-am-i HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For : 1.2.3.4\r\nConnection: close\r\n\r\n")},
	{"a folded header", text("GET /who-am-i HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n c\r\nConnection: close\r\n\r\n")},
	{"lines that end in LF", text("GET /who-am-i HTTP/1.1\nHost: localhost\nConnection: close\n\n")},
	{"an unfinished chunk size", text("POST /_batch HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nfffffffffffffffff\r\n")},
	{"100,000 headers",
		text("GET /who-am-i HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("A: b\r\n", 100_000) + "\r\n")},
	{"a hello of TLS inside", text("\x16\x03\x01\x00\x05hello")},
	{"HTTP/2, no settings", text(http2.ClientPreface + "garbage")},
	{"HTTP/2, two authorities", h2(func(f *http2.Framer, _ *bytes.Buffer) {
		request(f, 1, ":method", "POST", ":scheme", "http", ":authority", "localhost", ":authority", "evil.example",
			":path", "/x")
	})},
	{"HTTP/2, pseudo headers last", h2(func(f *http2.Framer, _ *bytes.Buffer) {
		request(f, 1, ":method", "POST", ":scheme", "http", "te", "trailers", ":path", "/x", ":authority", "localhost")
	})},
	{"HTTP/2, a connection header", h2(func(f *http2.Framer, _ *bytes.Buffer) {
		request(f, 1, ":method", "POST", ":scheme", "http", ":path", "/x", ":authority", "localhost", "connection",
			"close", "content-type", "application/grpc")
	})},
	{"HTTP/2, a line break in a value", h2(func(f *http2.Framer, _ *bytes.Buffer) {
		request(f, 1, ":method", "POST", ":scheme", "http", ":path", "/x", ":authority", "localhost", "x-a",
			"b\r\nc: d", "content-type", "application/grpc")
	})},
	{"HTTP/2, an even stream", h2(func(f *http2.Framer, _ *bytes.Buffer) {
		request(f, 2, ":method", "POST", ":scheme", "http", ":path", "/x", ":authority", "localhost", "content-type",
			"application/grpc")
	})},
	{"HTTP/2, data on no stream", h2(func(f *http2.Framer, _ *bytes.Buffer) { _ = f.WriteData(7, true, []byte("x")) })},
	{"HTTP/2, window of zero", h2(func(f *http2.Framer, _ *bytes.Buffer) { _ = f.WriteWindowUpdate(0, 0) })},
	{"HTTP/2, a frame of 16 MiB",
		h2(func(_ *http2.Framer, out *bytes.Buffer) { out.WriteString("\xff\xff\xff\x00\x00\x00\x00\x00\x01") })},
	{"HTTP/2, headers without end", h2(func(f *http2.Framer, _ *bytes.Buffer) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}})
		for range 10_000 {
			_ = f.WriteContinuation(1, false, bytes.Repeat([]byte{0x82}, 100))
		}
	})},
	{"HTTP/2, 10,000 streams reset", h2(func(f *http2.Framer, _ *bytes.Buffer) {
		for i := range uint32(10_000) {
			request(f, 2*i+1, ":method", "POST", ":scheme", "http", ":path", "/x", ":authority", "localhost",
				"content-type", "application/grpc")
			_ = f.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
		}
	})},
	{"HTTP/2, 100,000 settings", h2(func(f *http2.Framer, _ *bytes.Buffer) {
		for range 100_000 {
			_ = f.WriteSettings()
		}
	})},
	{"HTTP/2, 100,000 pings", h2(func(f *http2.Framer, _ *bytes.Buffer) {
		for range 100_000 {
			_ = f.WritePing(false, [8]byte{1})
		}
	})},
	{"HTTP/2, a bomb of HPACK", h2(func(f *http2.Framer, _ *bytes.Buffer) {
		var block bytes.Buffer
		_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: "a", Value: strings.Repeat("b", 4000)})
		block.Write(bytes.Repeat([]byte{0xbe}, 12_000)) // repeated, one byte each
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	})},
}

func text(s string) func() []byte { return func() []byte { return []byte(s) } }

// h2 is the preface of HTTP/2, with what frames adds.
func h2(frames func(f *http2.Framer, out *bytes.Buffer)) func() []byte {
	return func() []byte {
		out := bytes.NewBufferString(http2.ClientPreface)
		f := http2.NewFramer(out, nil)
		f.AllowIllegalWrites = true
		_ = f.WriteSettings()
		frames(f, out)
		return out.Bytes()
	}
}

// request writes the headers of a request unchanged.
func request(f *http2.Framer, stream uint32, headers ...string) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; i < len(headers); i += 2 {
		_ = encoder.WriteField(hpack.HeaderField{Name: headers[i], Value: headers[i+1]})
	}
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true,
		EndStream: true})
}

// TestOddProtocols sends each port odd bytes without a credential, and compares how that ended with a table that a
// person can review. No connection stays open beyond the limit for strangers, and both servers continue.
func TestOddProtocols(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cells := make([][]string, len(oddities))
	var wait sync.WaitGroup
	// Not all at once: on a busy machine a stranger's time would be over before its handshake was.
	slots := make(chan struct{}, oddAtOnce)
	for i := range oddities {
		cells[i] = make([]string, len(oddPorts))
		for j := range oddPorts {
			wait.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				cells[i][j] = w.odd(&oddPorts[j], oddities[i].bytes())
			})
		}
	}
	wait.Wait()
	var out bytes.Buffer
	fmt.Fprintf(&out, "# How each port answers bytes of strangers: a status of HTTP/1, the end of HTTP/2 (GOAWAY, or the reset of a stream), or the end alone.\n\n%-34s", "bytes")
	for _, p := range oddPorts {
		fmt.Fprintf(&out, "%-27s", p.name)
	}
	for i := range oddities {
		fmt.Fprintf(&out, "\n%-34s", oddities[i].name)
		for j := range oddPorts {
			fmt.Fprintf(&out, "%-27s", cells[i][j])
		}
	}
	compareGolden(t, "testdata/golden/odd.txt", trimmed(out.Bytes()))
	for _, s := range []*aServer{w.global, w.zone} {
		if _, err := s.admin.Do(t.Context(), api.Request{Path: "/who-am-i"}); err != nil {
			t.Errorf("the %s afterwards: %v", s.name, err)
		}
	}
}

// odd sends the bytes, and returns how the connection ended.
func (w *world) odd(p *oddPort, b []byte) string {
	s := w.server(p.on)
	conn, err := net.Dial("tcp", s.addresses[p.port])
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(oddPatience)); err != nil {
		return err.Error()
	}
	if p.tls {
		config := s.tls()
		config.ServerName, config.NextProtos = "127.0.0.1", []string{p.protocol}
		conn = tls.Client(conn, config)
	}
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		_, _ = conn.Write(b) // the other end may close early
	}()
	ended := howEnded(bufio.NewReader(conn), resets(b))
	_ = conn.Close()
	<-wrote
	return ended
}

// resets returns the streams of HTTP/2 that the bytes reset. Whether a server answers one first depends on its speed.
func resets(b []byte) map[uint32]bool {
	streams := map[uint32]bool{}
	frames, ok := bytes.CutPrefix(b, []byte(http2.ClientPreface))
	for f := http2.NewFramer(io.Discard, bytes.NewReader(frames)); ok; {
		frame, err := f.ReadFrame()
		if ok = err == nil; ok && frame.Header().Type == http2.FrameRSTStream {
			streams[frame.Header().StreamID] = true
		}
	}
	return streams
}

// howEnded reads an answer to its end. It ignores what the server says of the given streams of HTTP/2.
func howEnded(r *bufio.Reader, ignored map[uint32]bool) string {
	first, err := r.Peek(5)
	switch {
	case bytes.HasPrefix(first, []byte("HTTP/")):
		line, _ := r.ReadString('\n')
		return strings.Fields(line)[1]
	case err != nil:
		return closedBy(err)
	}
	f := http2.NewFramer(io.Discard, r)
	f.SetMaxReadFrameSize(1 << 20)
	for how := ""; ; {
		frame, err := f.ReadFrame()
		if err != nil {
			if how == "" {
				how = closedBy(err)
			}
			return how
		}
		if ignored[frame.Header().StreamID] {
			continue
		}
		switch frame := frame.(type) {
		case *http2.GoAwayFrame:
			return "GOAWAY " + frame.ErrCode.String()
		case *http2.RSTStreamFrame:
			how = "RST " + frame.ErrCode.String()
		case *http2.HeadersFrame:
			how = "answer"
		}
	}
}

func closedBy(err error) string {
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return "STAYS OPEN"
	}
	return "closed"
}
