package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/causeway-mesh/causeway/resources/store"
)

// handshakeTimeout bounds the TLS handshake with one member.
const handshakeTimeout = 2 * time.Second

// unreachable returns the error for a failed request at start: ErrRefused if a retry cannot help, otherwise
// store.ErrUnavailable.
func (c *Config) unreachable(ctx context.Context, err error) error {
	members := strings.Join(c.Endpoints, ", ")
	if denied(err) {
		return fmt.Errorf("etcd at %s: %w (%w): check --etcd-username, its password, and what its roles allow below %s",
			members, ErrRefused, err, c.Prefix)
	}
	if wrong := c.handshake(ctx); wrong != nil {
		return fmt.Errorf("etcd at %s: %w (%w): check --etcd-ca, --etcd-cert and --etcd-key, and that the endpoints are those of etcd", members, ErrRefused, wrong)
	}
	return fmt.Errorf("etcd at %s: %w (%w): check --etcd-endpoints, and that a majority of the members runs", members,
		store.ErrUnavailable, err)
}

// denied reports whether etcd knows this user and denies the request.
func denied(err error) bool {
	for _, why := range []error{rpctypes.ErrAuthFailed, rpctypes.ErrPermissionDenied, rpctypes.ErrUserEmpty,
		rpctypes.ErrUserNotFound} {
		if errors.Is(err, why) {
			return true
		}
	}
	return false
}

// handshake returns the TLS error if every member that accepts connections fails the handshake, on either side. The
// client library does not distinguish that from a member that is away.
func (c *Config) handshake(ctx context.Context) (wrong error) {
	if c.TLS == nil {
		return nil
	}
	for _, endpoint := range c.Endpoints {
		u, err := url.Parse(endpoint)
		if err != nil {
			return err
		}
		switch err := shakeHands(ctx, u.Host, c.TLS); {
		case err == nil:
			return nil
		case refusesTLS(err):
			wrong = fmt.Errorf("%s: %w", u.Host, err)
		}
	}
	return wrong
}

// shakeHands connects once, and waits briefly for a rejection of our certificate, which TLS 1.3 sends after the
// handshake.
func shakeHands(ctx context.Context, host string, config *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadDeadline(time.Now().Add(handshakeTimeout / 4)); err != nil {
		return err
	}
	if _, err := conn.Read(make([]byte, 1)); refusesTLS(err) {
		return err
	}
	return nil
}

// refusesTLS reports whether an error is one side's rejection of the other, as opposed to a broken connection.
func refusesTLS(err error) bool {
	var certificate *tls.CertificateVerificationError
	var notTLS tls.RecordHeaderError
	var alert *net.OpError
	return errors.As(err, &certificate) || errors.As(err, &notTLS) || errors.As(err, &alert) && alert.Op == "remote error"
}
