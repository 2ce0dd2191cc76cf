package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestSlowReadersOfMetricsKeepNobodyOut checks that an address that reads no answer to the end takes only its own share
// of places.
func TestSlowReadersOfMetricsKeepNobodyOut(t *testing.T) {
	d := NewDiagnostics()
	long := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "test_long",
		Help: "Makes an answer that no socket holds."}, []string{"n"})
	d.Registry.MustRegister(long)
	for i := range 8_000 { // few and long, which are quick to gather
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
		conn, err := net.Dial("tcp", l.Addr().String())
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
