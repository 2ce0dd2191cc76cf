package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestSlowReadersOfMetricsKeepNobodyOut checks that an address that reads no answer to the end takes only its own share
// of places.
func TestSlowReadersOfMetricsKeepNobodyOut(t *testing.T) {
	d := NewDiagnostics()
	long := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "test_long",
		Help: "Makes an answer that the sockets of slowly do not hold."}, []string{"n"})
	d.Registry.MustRegister(long)
	for i := range 300 { // few and long, which are quick to gather: a place is free again after scrapeWriteTimeout
		long.WithLabelValues(fmt.Sprint(i, strings.Repeat("x", 1500))).Set(1)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Serve(ctx, l) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for range mostScrapesOfOne {
		conn, err := slowly.DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := fmt.Fprintf(conn, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 16)); err != nil { // its answer has begun
			t.Fatal(err)
		}
	}
	if status := scrapeFrom(t, "127.0.0.1", l.Addr().String()); status != http.StatusServiceUnavailable {
		t.Errorf("the address that reads slowly got %d once more, want %d", status, http.StatusServiceUnavailable)
	}
	if status := scrapeFrom(t, "127.0.0.2", l.Addr().String()); status != http.StatusOK {
		t.Errorf("another address got %d", status)
	}
}

// slowly dials a connection that holds 70 KB of what nobody reads, on both sides, where another one over loopback holds
// 4 MB: its packets are small, and so is its buffer.
var slowly = net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
	return errors.Join(raw.Control(func(fd uintptr) {
		err = errors.Join(syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 1460),
			syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10))
	}), err)
}}

// scrapeFrom requests metrics from a local address, and returns the status.
func scrapeFrom(t *testing.T, from, to string) int {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
	defer client.CloseIdleConnections()
	r, err := client.Get("http://" + to + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	return r.StatusCode
}
