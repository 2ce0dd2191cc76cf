package main

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPlainHTTPToATLSPort checks the advice where a port that speaks TLS closes the connection without a word, as a
// server of gRPC does, and that an https:// address that ends so is not advised to be one.
func TestPlainHTTPToATLSPort(t *testing.T) {
	t.Parallel()
	ours := httptest.NewTLSServer(http.NotFoundHandler())
	defer ours.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: ours.TLS.Certificates, MinVersion: tls.VersionTLS13})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake()
			_ = conn.Close()
		}
	}()
	address := listener.Addr().String()
	for _, at := range []string{"http://" + address, "https://" + address} {
		client := ours.Client()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Do(request) //nolint:bodyclose // there is no answer
		said := &advised{}
		if got := explainTransport(at, err); !errors.As(got, &said) {
			t.Fatalf("%s: %v", at, got)
		}
		secure := strings.HasPrefix(at, "https:")
		if got := strings.Contains(said.advice, "https://") && strings.Contains(said.advice, "--ca"); got == secure {
			t.Errorf("%s: %q, advice %q", at, said.err, said.advice)
		}
	}
}
