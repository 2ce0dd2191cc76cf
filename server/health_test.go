package server_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/server"
)

// TestAskHealth checks a plaintext server on loopback, and a TLS server that listens on every address.
func TestAskHealth(t *testing.T) {
	certificate, err := server.LoadOrCreateCertificate(t.TempDir(), nil, testBox(7), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"127.0.0.1:0", ":0"} {
		t.Run(address, func(t *testing.T) {
			d := server.NewDiagnostics()
			var broken atomic.Bool
			d.AddCheck("store", func() error {
				if broken.Load() {
					return errors.New("the disk is full")
				}
				return nil
			})
			l, err := server.Listen(address)
			if err != nil {
				t.Fatal(err)
			}
			where := l.Addr().String()
			ctx, end := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { served <- d.Serve(ctx, server.SecureHTTP(l, certificate, server.Clients{})) }()
			if err := server.AskHealth(t.Context(), where, server.ReadyPage); err != nil {
				t.Error(err)
			}
			broken.Store(true)
			if err := server.AskHealth(t.Context(), where, server.ReadyPage); !errors.Is(err, server.ErrUnhealthy) ||
				!strings.Contains(err.Error(), "store: the disk is full") {
				t.Errorf("got %v", err)
			}
			if err := server.AskHealth(t.Context(), where, server.LivePage); err != nil {
				t.Error(err)
			}
			end()
			if err := <-served; err != nil {
				t.Error(err)
			}
			if err := server.AskHealth(t.Context(), where, server.LivePage); err == nil || errors.Is(err, server.ErrUnhealthy) {
				t.Errorf("nobody listens, and got %v", err)
			}
		})
	}
	for _, address := range []string{"127.0.0.1:0", "127.0.0.1", "127.0.0.1:none"} {
		if err := server.AskHealth(t.Context(), address, server.ReadyPage); err == nil ||
			!strings.Contains(err.Error(), "diagnostics address") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
