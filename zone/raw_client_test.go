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
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// rawRequest is one request as it is written, and rawAnswer the answer to it. The application answers with the target
// that it received, and with the headers that would have steered it behind CGI.
type (
	rawRequest struct{ method, target, headers string }
	rawAnswer  struct {
		status          int
		target, steered string
	}
)

// steering matches headers that, behind CGI, name another method, path or identity.
var steering = regexp.MustCompile(`(?i)^x[^a-z0-9](http[^a-z0-9]method([^a-z0-9]override)?|method[^a-z0-9]override|(original|rewrite)[^a-z0-9]url|forwarded[^a-z0-9]client[^a-z0-9]cert):`)

// oneByOne sends requests over HTTP/1.1, on one connection that it reopens when Envoy closes it.
func oneByOne(t *testing.T, certificate *tls.Certificate, port int, requests []rawRequest) []rawAnswer {
	t.Helper()
	var out []rawAnswer
	for len(out) < len(requests) {
		before := len(out)
		conn := rawDial(t, certificate, port, "http/1.1")
		r := bufio.NewReader(conn)
		for ok := true; ok && len(out) < len(requests); {
			q := requests[len(out)]
			_, _ = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: backend\r\n%s\r\n", q.method, q.target, q.headers)
			resp, err := http.ReadResponse(r, nil) // fails on a closed connection
			if err != nil {
				break
			}
			body, err := io.ReadAll(resp.Body)
			must(t, err)
			out = append(out, rawAnswer{resp.StatusCode, string(body), resp.Header.Get("steered")})
			ok = resp.StatusCode != http.StatusBadRequest // Envoy closes such a connection, but later
		}
		_ = conn.Close()
		if len(out) == before {
			t.Fatalf("no answer to %+v", requests[before])
		}
	}
	return out
}

func rawDial(t *testing.T, certificate *tls.Certificate, port int, protocol string) *tls.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{*certificate}, NextProtos: []string{protocol},
	})
	must(t, err)
	must(t, conn.SetDeadline(time.Now().Add(2*patience)))
	return conn
}

// multiplexed sends requests over one HTTP/2 connection, many streams at a time. It sends methods and paths unchanged.
func multiplexed(t *testing.T, certificate *tls.Certificate, port int, requests []rawRequest) []rawAnswer {
	t.Helper()
	const atOnce = 64
	conn := rawDial(t, certificate, port, "h2")
	defer conn.Close()
	buffered := bufio.NewWriterSize(conn, 1<<16)
	f := http2.NewFramer(buffered, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, _ = buffered.WriteString(http2.ClientPreface)
	must(t, f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}))
	must(t, f.WriteWindowUpdate(0, 1<<30))
	out := make([]rawAnswer, 0, len(requests))
	for first := 0; first < len(requests); first += atOnce {
		now := requests[first:min(first+atOnce, len(requests))]
		for i, q := range now {
			writeStream(t, f, uint32(2*(first+i)+1), q)
		}
		must(t, buffered.Flush())
		out = append(out, readStreams(t, f, buffered, uint32(2*first+1), now)...)
	}
	return out
}

func writeStream(t *testing.T, f *http2.Framer, id uint32, q rawRequest) {
	t.Helper()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	enc.SetMaxDynamicTableSize(0)
	fields := [][2]string{{":method", q.method}, {":scheme", "https"}, {":authority", "backend"}, {":path", q.target}}
	for line := range strings.SplitSeq(q.headers, "\r\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			fields = append(fields, [2]string{strings.ToLower(name), value})
		}
	}
	for _, field := range fields {
		must(t, enc.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
	}
	must(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true,
		EndStream: true}))
}

// readStreams reads until each stream from first on has ended. A stream that Envoy resets counts as refused.
func readStreams(t *testing.T, f *http2.Framer, w *bufio.Writer, first uint32, requests []rawRequest) []rawAnswer {
	t.Helper()
	out := make([]rawAnswer, len(requests))
	for open := len(requests); open > 0; {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatalf("%v, after %+v", err, requests[0])
		}
		id, ended := frame.Header().StreamID, false
		i := int(id-first) / 2
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				must(t, errors.Join(f.WriteSettingsAck(), w.Flush()))
			}
		case *http2.GoAwayFrame:
			t.Fatalf("Envoy goes away: %v, among %+v", frame, requests)
		case *http2.RSTStreamFrame:
			if out[i].status == 0 {
				out[i].status = http.StatusBadRequest
			}
			ended = true
		case *http2.MetaHeadersFrame:
			_, _ = fmt.Sscan(frame.PseudoValue("status"), &out[i].status)
			for _, field := range frame.RegularFields() {
				if field.Name == "steered" {
					out[i].steered = field.Value
				}
			}
			ended = frame.StreamEnded()
		case *http2.DataFrame:
			out[i].target += string(frame.Data())
			ended = frame.StreamEnded()
		}
		if ended {
			open--
		}
	}
	return out
}

// keepsEchoing runs an application that answers each request on a connection with its target.
func keepsEchoing(t *testing.T) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go echoTargets(c)
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().(*net.TCPAddr).Port
}

func echoTargets(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		var steered []string
		for header := line; strings.TrimSpace(header) != ""; {
			if header, err = r.ReadString('\n'); err != nil {
				return
			}
			if steering.MatchString(header) {
				steered = append(steered, strings.TrimSpace(header))
			}
		}
		target := ""
		if fields := strings.Fields(line); len(fields) == 3 {
			target = fields[1]
		}
		if _, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nSteered: %s\r\n\r\n%s", len(target), strings.Join(steered, ","), target); err != nil {
			return
		}
	}
}
