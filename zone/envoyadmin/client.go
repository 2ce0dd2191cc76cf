package envoyadmin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"

	"github.com/causeway-mesh/causeway/zone/identity"
)

const (
	// patience limits one question, from the first packet to the last byte.
	patience = 10 * time.Second
	// maxAnswer limits a proxy's response, in bytes.
	maxAnswer = 16 << 20
)

var (
	// ErrUnreachable reports that nothing at the address proved to be the proxy. It does not say what is there instead.
	ErrUnreachable = errors.New("the proxy does not answer on its admin port")
	// ErrTooLarge reports a response of more than 16 MiB.
	ErrTooLarge = errors.New("the proxy answers with more than 16 MiB")
)

// peer is a proxy that the zone may query.
type peer struct {
	address string // host:port
	id      spiffeid.ID
	trusted *identity.Bundles
	// several is set if more than one Envoy may listen at the address.
	several bool
}

// get returns the response of a proxy's admin interface to a GET. If several Envoys share the address, it also returns
// the uptime of the one that answered; 0 if that is unknown. Errors: ErrUnreachable, ErrTooLarge, that of ctx.
func (k *Key) get(ctx context.Context, p peer, path string, query url.Values) (answer []byte, runs time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var dials atomic.Int32 // one connection leads to one Envoy
	transport := &http.Transport{
		MaxConnsPerHost: 1, MaxResponseHeaderBytes: 16 << 10,
		DialTLSContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			dials.Add(1)
			dialer := &tls.Dialer{Config: k.config(p)}
			return dialer.DialContext(ctx, "tcp", address)
		},
	}
	defer transport.CloseIdleConnections()
	if p.several {
		raw, err := ask(ctx, transport, p.address, "/stats", url.Values{"filter": {"^server.uptime$"}})
		if err != nil {
			return nil, 0, err
		}
		runs = uptime(raw)
	}
	if answer, err = ask(ctx, transport, p.address, path, query); dials.Load() > 1 {
		runs = 0
	}
	return answer, runs, err
}

// uptime reads the metric server.uptime, in seconds; 0 if it is missing.
func uptime(stats []byte) time.Duration {
	seconds := 0
	if _, err := fmt.Sscanf(string(stats), "server.uptime: %d", &seconds); err != nil || seconds < 0 || seconds > math.MaxInt32 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// ask returns the response of the admin interface at an address to a GET.
func ask(ctx context.Context, transport http.RoundTripper, address, path string, query url.Values) ([]byte, error) {
	target := url.URL{Scheme: "https", Host: address, Path: path, RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("%w %s", ErrUnreachable, address)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w %s: the answer ended early", ErrUnreachable, address)
	case len(body) > maxAnswer:
		return nil, ErrTooLarge
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%w %s: status %d", ErrUnreachable, address, response.StatusCode)
	}
	return body, nil
}

// config authenticates the zone to the proxy, and accepts nobody but the proxy.
func (k *Key) config(p peer) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{k.certificate},
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies the SPIFFE ID, which a host name cannot
		VerifyConnection: func(state tls.ConnectionState) error {
			id, _, err := x509svid.Verify(state.PeerCertificates, bundles{p.trusted})
			if err == nil && id != p.id {
				err = fmt.Errorf("it is %s", id)
			}
			return err
		},
	}
}

// bundles adapts a mesh's bundles to go-spiffe.
type bundles struct{ *identity.Bundles }

// GetX509BundleForTrustDomain implements x509bundle.Source.
func (b bundles) GetX509BundleForTrustDomain(d spiffeid.TrustDomain) (*x509bundle.Bundle, error) {
	var authorities []*x509.Certificate
	if b.Bundles != nil {
		authorities = b.Certificates(d)
	}
	if len(authorities) == 0 {
		return nil, fmt.Errorf("the mesh does not trust %s", d)
	}
	return x509bundle.FromX509Authorities(d, authorities), nil
}
