// Package provider asks OpenID Connect providers: over TLS only, within limits of time and size, and at the address that
// was named.
package provider

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/causeway-mesh/causeway/credential"
)

const (
	// Timeout bounds each request to a provider.
	Timeout = 10 * time.Second
	// maxAnswer bounds each answer of a provider, in bytes: 2,000 keys fit in.
	maxAnswer  = 1 << 20
	maxHeaders = 64 << 10
)

// Algorithms returns the signatures that are accepted: none that uses a shared secret.
func Algorithms() []string {
	return []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384,
		oidc.PS512, oidc.EdDSA}
}

// Client returns an HTTP client that trusts the authorities of a PEM file, or the system's if there is none. setting is
// what names the file, for errors. A nil now is the system's clock.
func Client(setting, caFile string, now func() time.Time) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true  // requests are rare
	transport.DisableCompression = true // what is read is what arrived
	transport.MaxResponseHeaderBytes = maxHeaders
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, Time: now}
	if caFile != "" {
		pool, err := credential.Pool(setting, caFile)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return &http.Client{Transport: briefly{transport}, Timeout: Timeout, CheckRedirect: stay}, nil
}

// errElsewhere reports a redirect: a provider must answer at its own address.
var errElsewhere = errors.New("the provider redirects to another scheme or host, which is not followed")

func stay(next *http.Request, before []*http.Request) error {
	if first := before[0].URL; next.URL.Scheme != first.Scheme || next.URL.Host != first.Host || len(before) > 3 {
		return errElsewhere
	}
	return nil
}

// briefly is an http.RoundTripper that asks over TLS only, and lets no more than maxAnswer of an answer be read.
type briefly struct{ to http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b briefly) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("the provider's address %.200q: want https, because anyone on the network could change what it answers", r.URL.String())
	}
	resp, err := b.to.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &brief{ReadCloser: resp.Body, left: maxAnswer}
	return resp, nil
}

// brief is a body that fails when it is longer than it may be.
type brief struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *brief) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errLong
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		return n, errLong
	}
	return n, err
}

var errLong = fmt.Errorf("the provider's answer is longer than %d bytes", maxAnswer)
