package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// openBox is a sealer that seals nothing.
type openBox struct{}

func (openBox) Seal(plain []byte, _ string) ([]byte, error) {
	return append([]byte("sealed "), plain...), nil
}
func (openBox) Open(sealed []byte, _ string) ([]byte, error) { return sealed[len("sealed "):], nil }

// secured serves HTTPS with a certificate, and returns it with the serial number that a new handshake presents.
func secured(t *testing.T) (*Certificate, func() *big.Int) {
	t.Helper()
	c, err := LoadOrCreateCertificate(t.TempDir(), nil, openBox{}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(tls.NewListener(listener, c.TLSConfig())) }()
	t.Cleanup(func() { _ = s.Close() })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CAPEM)
	return c, func() *big.Int {
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS13,
			Time: c.folder.now}}
		conn, err := dialer.DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber
	}
}

// A server that runs for a year presents a certificate that is valid, without a restart.
func TestServingCertificateIsRenewed(t *testing.T) {
	c, presented := secured(t)
	first, ends := presented(), c.Expiries()["server"]
	for _, day := range []struct {
		after time.Duration
		same  bool
	}{{0, true}, {300 * 24 * time.Hour, true}, {336 * 24 * time.Hour, false}} {
		c.folder.now = func() time.Time { return time.Now().Add(day.after) }
		if err := c.renew(); err != nil {
			t.Fatal(err)
		}
		if same := presented().Cmp(first) == 0; same != day.same {
			t.Errorf("after %v: the same certificate is %v, want %v", day.after, same, day.same)
		}
	}
	if now := c.Expiries()["server"]; !now.After(ends) {
		t.Errorf("the certificate ends at %v, before the renewal at %v", now, ends)
	}
	stored, err := c.folder.loadOrCreateLeaf(c.ca)
	if err != nil || stored.Leaf.SerialNumber.Cmp(presented()) != 0 {
		t.Errorf("the folder has another certificate: %v, %v", stored, err)
	}
}

func TestRunReadsReplacedFiles(t *testing.T) {
	c, presented := secured(t)
	first := presented()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.run(ctx, slog.New(slog.DiscardHandler), 10*time.Millisecond) }()
	if err := os.Remove(filepath.Join(c.folder.dir, tlsCertFile)); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); presented().Cmp(first) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the server still presents its first certificate")
		}
		time.Sleep(50 * time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A folder with another CA is left alone: peers of this server have not pinned that CA.
func TestRenewalKeepsToItsCA(t *testing.T) {
	c, presented := secured(t)
	first := presented()
	for name, damage := range map[string]func(file string) error{
		"gone": os.Remove,
		"other": func(file string) error {
			other, err := newCA(time.Now())
			if err != nil {
				return err
			}
			return os.WriteFile(file, pemBlock("CERTIFICATE", other.cert.Raw), 0o600)
		},
	} {
		file := filepath.Join(c.folder.dir, caCertFile)
		if err := damage(file); err != nil {
			t.Fatal(err)
		}
		c.folder.now = func() time.Time { return time.Now().Add(leafLifetime - time.Hour) }
		if err := c.renew(); err == nil || !strings.Contains(err.Error(), caCertFile) {
			t.Errorf("%s: got %v", name, err)
		}
		if presented().Cmp(first) != 0 {
			t.Errorf("%s: the certificate was replaced", name)
		}
	}
}

// A peer that was given a name connects to it for as long as the peer lives: a new setting must not lock it out.
func TestServingCertificateKeepsEarlierNames(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []struct{ hosts, want, not []string }{
		{[]string{"a.example", "192.0.2.1"}, []string{"a.example", "192.0.2.1"}, []string{"b.example"}},
		{[]string{"b.example"}, []string{"a.example", "192.0.2.1", "b.example", "localhost"}, []string{"c.example"}},
		{[]string{"c.example", "192.0.2.2"}, []string{"a.example", "192.0.2.1", "b.example", "192.0.2.2"}, nil},
	} {
		c, err := LoadOrCreateCertificate(dir, step.hosts, openBox{}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		leaf := c.leaf.Load().Leaf
		for _, name := range step.want {
			if err := leaf.VerifyHostname(name); err != nil {
				t.Errorf("with %v: %v", step.hosts, err)
			}
		}
		for _, name := range step.not {
			if leaf.VerifyHostname(name) == nil {
				t.Errorf("with %v: the certificate covers %s", step.hosts, name)
			}
		}
	}
}

// The inherited names of a certificate are bounded, and those of the settings come first.
func TestServingCertificateForgetsAddresses(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 * maxEarlierAddresses {
		c, err := LoadOrCreateCertificate(dir, []string{fmt.Sprintf("192.0.2.%d", i+1)}, openBox{}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		leaf := c.leaf.Load().Leaf
		if err := leaf.VerifyHostname(fmt.Sprintf("192.0.2.%d", i+1)); err != nil {
			t.Error(err)
		}
		if len(leaf.IPAddresses) > maxEarlierAddresses+3 {
			t.Fatalf("the certificate covers %d addresses", len(leaf.IPAddresses))
		}
	}
}

func TestCheckHosts(t *testing.T) {
	for host, good := range map[string]bool{"a": true, "a.b-c.example": true, "*.example": true, "192.0.2.1": true, "::1": true,
		"": false, "a:5678": false, "A": false, "https://a": false, "a..b": false, "-a": false, "a b": false} {
		if err := CheckHosts([]string{host}); (err == nil) != good {
			t.Errorf("%q: %v", host, err)
		}
	}
}
