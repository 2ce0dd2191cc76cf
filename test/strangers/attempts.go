package strangers

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Attempt is one way to misbehave on a connection until it ends. The end of ctx closes conn.
type Attempt struct {
	// Name describes the attempt. Port is the server's port: kds, xds or api.
	Name, Port string
	// InTLS reports that the attempt follows a handshake if the port has TLS.
	InTLS bool
	Run   func(ctx context.Context, conn net.Conn) error
}

const (
	joinMethod = "/causeway.v1.MembershipService/Join"
	syncMethod = "/kuma.mesh.v1alpha1.KDSSyncService/GlobalToZoneSync"
	logMethod  = "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs"
	adsMethod  = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
)

// Attempts returns all attempts.
func Attempts() []Attempt {
	return []Attempt{
		{"60 unfinished messages of 10 MiB", "kds", true, unfinished(joinMethod, 60, 10<<20)},
		{"metadata of 15 MiB", "kds", true, endlessHeaders(syncMethod)},
		{"a handshake that does not go on", "kds", false, halfHandshake},
		{"pings, settings and resets without end", "kds", true, flood(syncMethod)},
		{"tiny frames of a message", "kds", true, tinyFrames(joinMethod)},
		{"streams of access logs, each with an unfinished message", "xds", true, unfinished(logMethod, 100, 4<<20)},
		{"streams of discovery, each with an unfinished message", "xds", true, unfinished(adsMethod, 100, 4<<20)},
		{"a first frame that does not come", "xds", true, silence},
		{"bodies of 4 MiB without a credential", "api", true, unfinishedBody},
		{"headers, a byte at a time", "api", true, slowHeaders},
	}
}

// talk starts a minimal HTTP/2 client. It discards the server's frames, except for window updates, which it uses.
func talk(conn net.Conn) (*http2.Framer, error) {
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return nil, err
	}
	f := http2.NewFramer(conn, conn)
	return f, f.WriteSettings()
}

// headers returns the header block of a call, with more fields.
func headers(method string, more ...hpack.HeaderField) []byte {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	fields := append([]hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: method},
		{Name: ":authority", Value: "server"},
		{Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"},
		{Name: "client-id", Value: "-stranger"},
		{Name: "authorization", Value: "Bearer none"}, // refused where callers without a credential are refused
	}, more...)
	for _, f := range fields {
		_ = e.WriteField(f) // into memory
	}
	return block.Bytes()
}

// drain reads until the connection ends.
func drain(conn net.Conn) error {
	_, err := io.Copy(io.Discard, conn)
	return err
}

// unfinished opens streams and sends on each the start of a message of the given size.
func unfinished(method string, streams, size int) func(context.Context, net.Conn) error {
	return func(_ context.Context, conn net.Conn) error {
		f, err := talk(conn)
		if err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() { ended <- drain(conn) }()
		err = sendUnfinished(f, method, streams, size)
		if err == nil {
			return <-ended
		}
		return errors.Join(err, conn.Close(), <-ended)
	}
}

func sendUnfinished(f *http2.Framer, method string, streams, size int) error {
	const frame = 16 << 10
	for i := range streams {
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: headers(method),
			EndHeaders: true}); err != nil {
			return err
		}
	}
	first := make([]byte, frame)
	binary.BigEndian.PutUint32(first[1:], uint32(size))
	for sent := 0; sent+frame < size; sent += frame {
		for i := range streams {
			if err := f.WriteData(uint32(2*i+1), false, first); err != nil {
				return err
			}
		}
		clear(first)
	}
	return nil
}

// endlessHeaders sends one block of headers of 15 MiB.
func endlessHeaders(method string) func(context.Context, net.Conn) error {
	return func(_ context.Context, conn net.Conn) error {
		f, err := talk(conn)
		if err != nil {
			return err
		}
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers(method)}); err != nil {
			return err
		}
		more := headers("", hpack.HeaderField{Name: "x-more", Value: strings.Repeat("x", 8<<10)})
		for range 15 << 20 / (8 << 10) {
			if err := f.WriteContinuation(1, false, more); err != nil {
				return err
			}
		}
		return drain(conn)
	}
}

// halfHandshake announces a ClientHello and does not send it.
func halfHandshake(_ context.Context, conn net.Conn) error {
	if _, err := conn.Write([]byte{22, 3, 1, 2, 0, 1, 0}); err != nil {
		return err
	}
	return drain(conn)
}

func silence(_ context.Context, conn net.Conn) error { return drain(conn) }

// flood sends frames that cost the server more than the client, as fast as it accepts them.
func flood(method string) func(context.Context, net.Conn) error {
	return func(_ context.Context, conn net.Conn) error {
		f, err := talk(conn)
		if err != nil {
			return err
		}
		for i := 0; ; i++ {
			id := uint32(2*i + 1)
			for _, send := range []func() error{
				func() error { return f.WritePing(false, [8]byte{byte(i)}) },
				func() error { return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 16}) },
				func() error {
					return f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: headers(method), EndHeaders: true})
				},
				func() error { return f.WriteRSTStream(id, http2.ErrCodeCancel) },
			} {
				if err := send(); err != nil {
					return err
				}
			}
		}
	}
}

// tinyFrames sends a message with one byte per frame.
func tinyFrames(method string) func(context.Context, net.Conn) error {
	return func(_ context.Context, conn net.Conn) error {
		f, err := talk(conn)
		if err != nil {
			return err
		}
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers(method),
			EndHeaders: true}); err != nil {
			return err
		}
		for _, b := range []byte{0, 0, 160, 0, 0} {
			if err := f.WriteData(1, false, []byte{b}); err != nil {
				return err
			}
		}
		for {
			if err := f.WriteData(1, false, []byte{0}); err != nil {
				return err
			}
		}
	}
}

// unfinishedBody announces a body, sends it without waiting for a 100 Continue, and does not finish it.
func unfinishedBody(_ context.Context, conn net.Conn) error {
	const size = 4 << 20
	_, err := fmt.Fprintf(conn, "PUT /meshes/default/meshtimeouts/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/yaml\r\nAuthorization: Bearer none\r\nContent-Length: %d\r\n\r\n", size)
	if err != nil {
		return err
	}
	piece := bytes.Repeat([]byte{'#'}, 16<<10)
	for range size/len(piece) - 1 {
		if _, err := conn.Write(piece); err != nil {
			return err
		}
	}
	return drain(conn)
}

// slowHeaders never ends its headers.
func slowHeaders(ctx context.Context, conn net.Conn) error {
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "); err != nil {
		return err
	}
	for pause(ctx) {
		if _, err := conn.Write([]byte{'x'}); err != nil {
			return err
		}
	}
	return ctx.Err()
}
