package zone

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// ports are the zone's listeners. gRPC adds TLS to xDS; the other listeners are wrapped.
type ports struct {
	api, xds, diagnostics net.Listener
	xdsTLS                *tls.Config
	// certificate is the serving certificate of the ports off loopback; nil if there are none.
	certificate *server.Certificate
	// bare are the same listeners without TLS.
	bare []net.Listener
}

func listen(ctx context.Context, cfg *Config, box *secrets.Box, guard *access.Guard,
	diagnostics *server.Diagnostics) (_ *ports, err error) {
	p := &ports{}
	defer func() {
		if err == nil {
			return
		}
		for _, l := range p.bare {
			_ = l.Close()
		}
	}()
	for _, one := range []struct {
		address string
		into    *net.Listener
		listen  func(string) (net.Listener, error)
	}{
		{cfg.APIAddress, &p.api, server.Listen}, {cfg.XDSAddress, &p.xds, server.Listen},
		{cfg.DiagnosticsAddress, &p.diagnostics, server.ListenOpen},
	} {
		if *one.into, err = one.listen(one.address); err != nil {
			return nil, err
		}
		p.bare = append(p.bare, *one.into)
	}
	if err := p.secure(cfg, box); err != nil {
		return nil, err
	}
	diagnostics.AddListeners(cfg.Log, p.bare...)
	diagnostics.AddExpiries(p.certificate.Expiries)
	return p, p.admit(ctx, cfg, guard)
}

// admit creates a token for the first admin if loopback callers need a credential, or the API is off loopback.
func (p *ports) admit(ctx context.Context, cfg *Config, guard *access.Guard) error {
	if server.IsLoopback(p.api.Addr()) && !cfg.Access.RequireCredential {
		return nil
	}
	file, err := guard.EnsureAdminToken(ctx, cfg.DataDir)
	if err == nil {
		cfg.Log.Info("the HTTP API requires a credential: causewayctl --token-file "+file, "api", p.api.Addr().String())
	}
	return err
}

// secure adds TLS to the ports off loopback, with one certificate for all.
func (p *ports) secure(cfg *Config, box *secrets.Box) (err error) {
	if !slices.ContainsFunc(p.bare, func(l net.Listener) bool { return !server.IsLoopback(l.Addr()) }) {
		return nil
	}
	if p.certificate, err = server.LoadOrCreateCertificate(filepath.Join(cfg.DataDir, tlsDir), servingHosts(cfg),
		box, cfg.Now); err != nil {
		return err
	}
	if p.certificate.MinVersion, err = server.ParseTLSVersion(cfg.TLSMinVersion); err != nil {
		return err
	}
	// The API accepts client certificates of users, and of proxies, which request their identity there. The server
	// names no acceptable authority, because that would keep all other certificates away.
	p.api = server.SecureHTTP(p.api, p.certificate, server.Clients{Ask: true})
	p.diagnostics = server.SecureHTTP(p.diagnostics, p.certificate, server.Clients{})
	if !server.IsLoopback(p.xds.Addr()) {
		p.xdsTLS = p.certificate.TLSConfig()
	}
	return nil
}

// own reports whether a program on this machine that dials address and port may reach a port on loopback. A name may:
// the dialer resolves it, and others can change the result.
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

// tend serves diagnostics, tells the init system of the server's state, and keeps the serving certificate valid.
func (p *ports) tend(ctx context.Context, group *errgroup.Group, diagnostics *server.Diagnostics, log *slog.Logger) {
	group.Go(func() error { return diagnostics.Serve(ctx, p.diagnostics) })
	group.Go(func() error { return diagnostics.Notify(ctx, p.diagnostics.Addr(), log) })
	group.Go(func() error { return p.certificate.Run(ctx, log) })
}

// servingHosts returns the names and addresses at which this machine may be reachable.
func servingHosts(cfg *Config) []string {
	var hosts []string
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
