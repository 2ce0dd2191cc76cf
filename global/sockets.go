package global

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// sockets are the server's listeners. All are bound before anything but startup progress is served. gRPC adds TLS to
// KDS; the others are wrapped.
type sockets struct {
	api, kds, diagnostics net.Listener
	// secured is closed when diagnostics is final: on loopback from the start, elsewhere once there is a certificate.
	secured chan struct{}
}

// listenFirst binds the diagnostics port, which reports startup progress.
func listenFirst(c *Config) (*sockets, error) {
	l, err := server.ListenOpen(c.DiagnosticsAddress)
	if err != nil {
		return nil, fmt.Errorf("--diagnostics-address: %w", err)
	}
	s := &sockets{diagnostics: l, secured: make(chan struct{})}
	if server.IsLoopback(l.Addr()) {
		close(s.secured)
	}
	return s, nil
}

// listen binds the others.
func (s *sockets) listen(c *Config) (err error) {
	if s.api, err = server.Listen(c.APIAddress); err != nil {
		return fmt.Errorf("--api-address: %w", err)
	}
	if s.kds, err = server.Listen(c.KDSAddress); err != nil {
		return fmt.Errorf("--kds-address: %w", err)
	}
	c.term.Fence(s.api)
	c.term.Fence(s.kds)
	return nil
}

// serveDiagnostics serves diagnostics once the socket is secured, until ctx ends.
func (s *sockets) serveDiagnostics(ctx context.Context, diagnostics *server.Diagnostics) error {
	select {
	case <-s.secured:
		return diagnostics.Serve(ctx, s.diagnostics)
	case <-ctx.Done():
		return nil
	}
}

// open secures the sockets, reports the expiry of their certificate, and sets up access to the HTTP API.
func (s *sockets) open(ctx context.Context, c *Config, box *secrets.Box, guard *access.Guard,
	diagnostics *server.Diagnostics) (*server.Certificate, error) {
	certificate, err := s.secure(c, box, guard.ClientCAs())
	if err != nil {
		return nil, err
	}
	diagnostics.AddExpiries(certificate.Expiries)
	return certificate, s.admit(ctx, c, guard)
}

// secure adds TLS to the listeners off loopback, with a certificate of one authority for all. It returns nil if none
// needs one. users are the authorities of client certificates for the API.
func (s *sockets) secure(c *Config, box *secrets.Box, users *x509.CertPool) (*server.Certificate, error) {
	if !c.KDSTLS && server.IsLoopback(s.api.Addr()) && server.IsLoopback(s.diagnostics.Addr()) {
		return nil, nil
	}
	hosts := slices.Clone(c.TLSNames)
	for _, l := range []net.Listener{s.kds, s.api, s.diagnostics} {
		hosts = append(hosts, hostsOf(l.Addr())...)
	}
	for _, address := range c.KDSAdvertise {
		if host, _, err := net.SplitHostPort(address); err == nil {
			hosts = append(hosts, host)
		}
	}
	certificate, err := server.LoadOrCreateCertificate(c.certificateDir(), hosts, box, c.Now)
	if err != nil {
		return nil, err
	}
	if certificate.MinVersion, err = server.ParseTLSVersion(c.TLSMinVersion); err != nil {
		return nil, err
	}
	s.api = server.SecureHTTP(s.api, certificate, server.Clients{Ask: users != nil, CAs: users})
	if !server.IsLoopback(s.diagnostics.Addr()) {
		s.diagnostics = server.SecureHTTP(s.diagnostics, certificate, server.Clients{})
		close(s.secured)
	}
	return certificate, nil
}

// admit writes the first admin's context, with a token if the API requires a credential.
func (s *sockets) admit(ctx context.Context, c *Config, guard *access.Guard) (err error) {
	token := ""
	if !server.IsLoopback(s.api.Addr()) || c.Access.RequireCredential {
		if token, err = guard.EnsureAdminToken(ctx, c.DataDir); err != nil {
			return err
		}
	}
	file, err := access.WriteAdminContext(c.DataDir, "global", s.api.Addr(), filepath.Join(c.certificateDir(), "ca.crt"), token)
	if err == nil {
		c.Log.Info("administer this server: causewayctl --config "+file, "api", s.api.Addr().String())
	}
	return err
}

// hostsOf returns the names of a server that listens on a: its host name and the address, or all addresses of this
// machine.
func hostsOf(a net.Addr) []string {
	var hosts []string
	if name, err := os.Hostname(); err == nil && name != "" {
		hosts = append(hosts, name)
	}
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return hosts
	}
	if !tcp.IP.IsUnspecified() {
		return append(hosts, tcp.IP.String())
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return hosts
	}
	for _, one := range addresses {
		if n, ok := one.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			hosts = append(hosts, n.IP.String())
		}
	}
	return hosts
}

func (s *sockets) close() {
	for _, l := range []net.Listener{s.api, s.kds, s.diagnostics} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// addresses returns the content of the ready file.
func (s *sockets) addresses() map[string]string {
	return map[string]string{
		"api": s.api.Addr().String(), "kds": s.kds.Addr().String(), "diagnostics": s.diagnostics.Addr().String(),
	}
}
