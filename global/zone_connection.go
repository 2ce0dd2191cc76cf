package global

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/server"
)

// zoneCredentials is the TLS of the KDS port. It requests but does not require a client certificate, since a joining
// server has none. It verifies the certificate here rather than in the handshake, so that a zone gets the reason for a
// rejection.
type zoneCredentials struct {
	credentials.TransportCredentials
	judge func(shown []*x509.Certificate) (enrolment.Certificate, error)
}

// newZoneCredentials serves certificate and verifies client certificates with judge.
func newZoneCredentials(certificate *server.Certificate, judge func([]*x509.Certificate) (enrolment.Certificate,
	error)) *zoneCredentials {
	config := certificate.TLSConfig()
	config.ClientAuth = tls.RequestClientCert
	config.SessionTicketsDisabled = true // each connection presents its certificate
	return &zoneCredentials{credentials.NewTLS(config), judge}
}

// ServerHandshake implements credentials.TransportCredentials.
func (c *zoneCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return conn, info, err
	}
	secured, ok := info.(credentials.TLSInfo)
	if !ok {
		return conn, info, nil
	}
	out := &zoneConnection{TLSInfo: secured}
	if shown := secured.State.PeerCertificates; len(shown) > 0 {
		out.shown = true
		out.held, out.err = c.judge(shown)
	}
	return kds.JoinPings(server.CountFrames(conn)), out, nil
}

// Clone implements credentials.TransportCredentials.
func (c *zoneCredentials) Clone() credentials.TransportCredentials {
	return &zoneCredentials{c.TransportCredentials.Clone(), c.judge}
}

// zoneConnection is what one connection has proved. It is the connection's AuthInfo.
type zoneConnection struct {
	credentials.TLSInfo
	// shown is set if the client presented a certificate; err is the reason why it is invalid.
	shown bool
	err   error

	mu   sync.Mutex
	held enrolment.Certificate // guarded by mu: the presented certificate, or the last one issued over this connection
}

// now returns the connection's current certificate.
func (c *zoneConnection) now() (enrolment.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held, c.err
}

// Zone implements kds.Named.
func (c *zoneConnection) Zone() string {
	held, err := c.now()
	if err != nil || !c.shown {
		return ""
	}
	return held.Zone
}

// renewed replaces the connection's certificate with one issued over it.
func (c *zoneConnection) renewed(held enrolment.Certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = held
}

// connectionOf returns the connection of a call, or nil if it has no client certificate.
func connectionOf(ctx context.Context) *zoneConnection {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	if c, ok := p.AuthInfo.(*zoneConnection); ok && c.shown {
		return c
	}
	return nil
}

// guestOf returns the listener's record of a call's connection.
func guestOf(ctx context.Context) *server.Guest {
	if p, ok := peer.FromContext(ctx); ok {
		return server.GuestAt(p.Addr)
	}
	return nil
}

// addressOf returns the caller's address, for logs.
func addressOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		return p.Addr.String()
	}
	return ""
}
