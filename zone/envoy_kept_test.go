package zone_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// endless is a request whose answer does not end.
type endless struct {
	bytes atomic.Int64
	ended atomic.Bool
}

// keepOpen begins a request whose answer does not end, through the outbound of a caller.
func keepOpen(t *testing.T, port int) *endless {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/endless", port), nil)
	must(t, err)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	must(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the endless request is answered with %s", resp.Status)
	}
	out := &endless{}
	go func() {
		defer out.ended.Store(true)
		for one := make([]byte, 64); ; {
			n, err := resp.Body.Read(one)
			out.bytes.Add(int64(n))
			if err != nil {
				return
			}
		}
	}()
	return out
}

// keepSocket opens a WebSocket through the outbound of a caller, and returns what sends a text and awaits it back.
func keepSocket(t *testing.T, port int) (echo func(string) error) {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: backend\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	must(t, err)
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	must(t, err)
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the upgrade is answered with %s", resp.Status)
	}
	return func(text string) error {
		got := make([]byte, len(text))
		if _, err := io.WriteString(conn, text); err != nil {
			return err
		}
		if _, err := io.ReadFull(in, got); err != nil || string(got) != text {
			return fmt.Errorf("%s came back as %q: %w", text, got, err)
		}
		return nil
	}
}

// comesBack sends a large body through the outbound of a caller, and returns an error unless it comes back.
func comesBack(port int, body []byte) error {
	resp, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/", port), "application/octet-stream", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, body) {
		return fmt.Errorf("%s with %d bytes of %d: %w", resp.Status, len(got), len(body), err)
	}
	return nil
}

// TestChangedObservationKeepsConnections: a change of access logs, on both sides, and of the format of spans counts for
// new connections, moves no listener, and ends no request that is under way and no WebSocket, though the drain time of
// 1 s is over. Bodies of 10 MB come through.
func TestChangedObservationKeepsConnections(t *testing.T) {
	t.Parallel()
	w, z, c := newTraced(t), startZipkin(t), startCollector(t)
	file := filepath.Join(t.TempDir(), "log")
	observe := func(n int, tracer string) {
		backend := func(side string) string {
			return fmt.Sprintf(`{backends: [{type: File, file: {path: %s, format: {type: Plain, plain: "%s %d."}}}]}`, file, side, n)
		}
		w.apply(fmt.Sprintf("{type: MeshAccessLog, mesh: default, name: p, spec: {to: [{targetRef: {kind: Mesh}, default: %s}], rules: [{default: %s}]}}",
			backend("sent"), backend("received")))
		w.trace("{backends: [" + tracer + "]}")
		w.finds(file, fmt.Sprintf("sent %d.", n))
		w.finds(file, fmt.Sprintf("received %d.", n))
	}
	toZipkin := fmt.Sprintf(`{type: Zipkin, zipkin: {url: "%s/api/v2/spans"}}`, z.URL)
	observe(1, toZipkin)
	var open []*endless
	for range 5 {
		open = append(open, keepOpen(t, w.port))
	}
	socket := keepSocket(t, w.port)
	must(t, socket("before"))
	listeners := w.caller.listeners()

	observe(2, fmt.Sprintf("{type: OpenTelemetry, openTelemetry: {endpoint: %q}}", c.address))
	soon(t, func() error {
		plain(w.port, "/")
		if len(c.taken()) == 0 {
			return fmt.Errorf("no span in the other format")
		}
		return nil
	})
	observe(3, toZipkin)
	must(t, comesBack(w.port, bytes.Repeat([]byte("0123456789"), 1_000_000)))
	const overDrainTime = 100 // bytes, one each 20 ms
	for i, one := range open {
		until := one.bytes.Load() + overDrainTime
		soon(t, func() error {
			if n := one.bytes.Load(); !one.ended.Load() && n < until {
				return fmt.Errorf("request %d has %d bytes of %d", i+1, n, until)
			}
			return nil
		})
		if one.ended.Load() {
			t.Errorf("request %d of %d ended", i+1, len(open))
		}
	}
	must(t, socket("after"))
	if now := w.caller.listeners(); fmt.Sprint(now) != fmt.Sprint(listeners) {
		t.Errorf("logs and spans moved listeners: %v, then %v", listeners, now)
	}
}
