package zone

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/zone/nameserver"
)

// ports are the zone's listeners. gRPC adds TLS to xDS; the other listeners are wrapped.
type ports struct {
	api, xds, diagnostics net.Listener
	dns                   net.PacketConn // nil without --dns-address
	xdsTLS                *tls.Config
	// certificate is the serving certificate of the ports off loopback; nil if there are none.
	certificate *server.Certificate
	// bare holds the same listeners without TLS.
	bare []net.Listener
}

// listenFirst binds the diagnostics port, which reports the progress of the start: a zone that waits for admission by
// its global is alive.
func listenFirst(cfg *Config, box *secrets.Box) (_ *ports, err error) {
	p := &ports{}
	if p.diagnostics, err = server.ListenOpen(cfg.DiagnosticsAddress); err != nil {
		return nil, fmt.Errorf("--diagnostics-address: %w", err)
	}
	p.bare = []net.Listener{p.diagnostics}
	if server.IsLoopback(p.diagnostics.Addr()) {
		return p, nil
	}
	if err := p.certify(cfg, box); err != nil {
		p.close()
		return nil, err
	}
	p.diagnostics = server.SecureHTTP(p.diagnostics, p.certificate, server.Clients{})
	return p, nil
}

// listen binds the other ports.
func (p *ports) listen(ctx context.Context, cfg *Config, box *secrets.Box, guard *access.Guard,
	diagnostics *server.Diagnostics) (err error) {
	for _, one := range []struct {
		flag, address string
		into          *net.Listener
	}{{"--api-address", cfg.APIAddress, &p.api}, {"--xds-address", cfg.XDSAddress, &p.xds}} {
		if *one.into, err = server.Listen(one.address); err != nil {
			return fmt.Errorf("%s: %w", one.flag, err)
		}
		cfg.term.Fence(*one.into)
		p.bare = append(p.bare, *one.into)
	}
	if cfg.DNSAddress != "" {
		if p.dns, err = (&net.ListenConfig{}).ListenPacket(ctx, "udp", cfg.DNSAddress); err != nil {
			return fmt.Errorf("--dns-address: %w", err)
		}
	}
	if err := p.secure(cfg, box); err != nil {
		return err
	}
	diagnostics.AddLog(cfg.Log)
	diagnostics.AddListeners(cfg.Log, p.bare...)
	diagnostics.AddExpiries(p.certificate.Expiries)
	return p.admit(ctx, cfg, guard)
}

// close closes all listeners. Those that were served are already closed.
func (p *ports) close() {
	for _, l := range p.bare {
		_ = l.Close()
	}
	if p.dns != nil {
		_ = p.dns.Close()
	}
}

// admit writes the first admin's context. It creates her token if loopback callers need a credential, or the API is off
// loopback.
func (p *ports) admit(ctx context.Context, cfg *Config, guard *access.Guard) (err error) {
	token := ""
	if !server.IsLoopback(p.api.Addr()) || cfg.Access.RequireCredential {
		if token, err = guard.EnsureAdminToken(ctx, cfg.DataDir); err != nil {
			return err
		}
	}
	file, err := access.WriteAdminContext(cfg.DataDir, cfg.Zone, p.api.Addr(), filepath.Join(cfg.DataDir, tlsDir, "ca.crt"), token)
	if err == nil {
		cfg.Log.Info("administer this server: causewayctl --config "+file, "api", p.api.Addr().String())
	}
	return err
}

// authority returns the CA of the certificate in PEM; nil if all ports are on loopback.
func (p *ports) authority() []byte {
	if p.certificate == nil {
		return nil
	}
	return p.certificate.CAPEM
}

// certify makes the certificate for all ports.
func (p *ports) certify(cfg *Config, box *secrets.Box) error {
	certificate, err := server.LoadOrCreateCertificate(filepath.Join(cfg.DataDir, tlsDir), servingHosts(cfg), box, cfg.Now)
	if err != nil {
		return err
	}
	p.certificate = certificate
	p.certificate.MinVersion, err = server.ParseTLSVersion(cfg.TLSMinVersion)
	return err
}

// secure adds TLS to the ports off loopback, with one certificate for all.
func (p *ports) secure(cfg *Config, box *secrets.Box) error {
	if !slices.ContainsFunc(p.bare, func(l net.Listener) bool { return !server.IsLoopback(l.Addr()) }) {
		return nil
	}
	if p.certificate == nil {
		if err := p.certify(cfg, box); err != nil {
			return err
		}
	}
	// The API accepts client certificates of users, and of proxies, which request their identity there. The server
	// names no acceptable authority, because that would keep all other certificates away.
	p.api = server.SecureHTTP(p.api, p.certificate, server.Clients{Ask: true})
	if !server.IsLoopback(p.xds.Addr()) {
		p.xdsTLS = p.certificate.TLSConfig()
	}
	return nil
}

// own reports whether a program on this machine that dials address and port may reach a loopback port of this server.
// It assumes so for a name: the dialer resolves it, and others may control the result.
func (p *ports) own(address string, port uint32) bool {
	ip, err := netip.ParseAddr(address)
	name := err != nil
	ip = ip.Unmap().WithZone("")
	return slices.ContainsFunc(p.bare, func(l net.Listener) bool {
		at, ok := l.Addr().(*net.TCPAddr)
		if !ok || uint32(at.Port) != port || !at.IP.IsLoopback() {
			return false
		}
		return name || ip.IsUnspecified() || ip == at.AddrPort().Addr().Unmap()
	})
}

// serveNames answers queries for the names of services, if there is a port for them.
func (p *ports) serveNames(ctx context.Context, o *opened) error {
	if p.dns == nil {
		return nil
	}
	return nameserver.Serve(ctx, p.dns, nameserver.Config{Store: o.store, Home: o.home})
}

// addresses returns the content of the ready file.
func (p *ports) addresses() map[string]string {
	out := map[string]string{
		"api": p.api.Addr().String(), "xds": p.xds.Addr().String(), "diagnostics": p.diagnostics.Addr().String(),
	}
	if p.dns != nil {
		out["dns"] = p.dns.LocalAddr().String()
	}
	return out
}

// servingHosts returns the names and addresses at which this machine may be reachable.
func servingHosts(cfg *Config) []string {
	hosts := slices.Clone(cfg.TLSNames)
	for _, address := range []string{cfg.APIAddress, cfg.XDSAddress, cfg.DiagnosticsAddress} {
		host, _, err := net.SplitHostPort(address)
		if ip := net.ParseIP(host); err == nil && host != "" && (ip == nil || !ip.IsUnspecified()) {
			hosts = append(hosts, host)
		}
	}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return hosts
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() {
			hosts = append(hosts, n.IP.String())
		}
	}
	return hosts
}
