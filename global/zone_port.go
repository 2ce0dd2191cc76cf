package global

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/server"
)

// drainTimeout bounds how long calls may take once the server stops.
const drainTimeout = 10 * time.Second

// zonePort is the port that serves zones.
type zonePort struct {
	listener net.Listener
	// certificate is the server's; nil if no port has TLS.
	certificate *server.Certificate
	// addresses are this server's addresses for zones; none if the port has no TLS.
	addresses []string
}

// newZonePort returns the port of a listener. It fails if zones could not find the server.
func newZonePort(c *Config, l net.Listener, certificate *server.Certificate) (*zonePort, error) {
	port := &zonePort{listener: l, certificate: certificate}
	if certificate == nil || !c.KDSTLS {
		return port, nil
	}
	port.addresses = c.KDSAdvertise
	if len(port.addresses) == 0 {
		port.addresses = advertised(l.Addr())
	}
	if len(port.addresses) == 0 {
		return nil, errors.New("zones could not find this global: give its addresses with --kds-advertise-address")
	}
	return port, nil
}

// maxAdvertised bounds the addresses in a join string.
const maxAdvertised = 8

// advertised returns the addresses at which others may reach a listener on a: its own, or those of this machine,
// followed by its name, which not all machines can resolve.
func advertised(a net.Addr) []string {
	_, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return nil
	}
	tcp, ok := a.(*net.TCPAddr)
	if ok && !tcp.IP.IsUnspecified() {
		return []string{a.String()}
	}
	hosts := hostsOf(a)
	var out []string
	for _, host := range append(hosts[min(1, len(hosts)):], hosts[:min(1, len(hosts))]...) {
		if address := net.JoinHostPort(host, port); enrolment.CheckAddress(address) == nil {
			out = append(out, address)
		}
	}
	if len(out) == 0 {
		return []string{net.JoinHostPort("127.0.0.1", port)}
	}
	return out[:min(len(out), maxAdvertised)]
}

// newKDSServer returns the gRPC server with its credentials.
func newKDSServer(c *Config, port *zonePort, admission *admission, sync *kds.Global) (*grpc.Server, error) {
	options := append(kds.ServerOptions(), sync.FewCalls())
	if !c.KDSTLS {
		at := port.listener.Addr()
		if !server.IsLoopback(at) {
			return nil, fmt.Errorf("--kds-tls=false on %s: plaintext is for loopback only, so listen on 127.0.0.1 or leave TLS on", at)
		}
		c.Log.Warn("zones are served without TLS, on loopback", "kds", at.String())
		return grpc.NewServer(options...), nil
	}
	c.Log.Info("zones join with what causewayctl zone create prints", "ca_sha256", port.certificate.CASHA256, "ca_file",
		c.certificateDir()+"/ca.crt")
	return grpc.NewServer(append(options,
		grpc.Creds(c.Panics.Credentials(newZoneCredentials(port.certificate, admission.judgeShown))))...), nil
}

// wire returns the listener that gRPC reads from. With TLS, the credentials limit strangers.
func wire(c *Config, l net.Listener) net.Listener {
	if c.KDSTLS {
		return l
	}
	return server.Plaintext(l)
}

// serveKDS serves until ctx ends. Then it tells zones to reconnect elsewhere and ends their streams.
func serveKDS(ctx context.Context, c *Config, s *grpc.Server, sync *kds.Global, l net.Listener) error {
	drained := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(drained)
		force := time.AfterFunc(drainTimeout, s.Stop)
		defer force.Stop()
		sync.Drain()
		s.GracefulStop()
	})
	err := s.Serve(wire(c, kds.Listener(l)))
	if !stop() {
		<-drained
	} else {
		sync.Drain()
		s.Stop()
	}
	sync.Wait()
	return err
}
