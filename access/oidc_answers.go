package access

import (
	"fmt"
	"io"
	"net/http"
)

const (
	// maxProviderAnswer bounds a provider's document and its keys, in bytes; 2,000 keys fit in.
	maxProviderAnswer  = 1 << 20
	maxProviderHeaders = 64 << 10
)

// briefly is an http.RoundTripper that asks over TLS only, and lets no more than maxProviderAnswer of an answer be
// read.
type briefly struct{ to http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b briefly) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("the provider's keys are at %.200q: want https, because anyone on the network could replace them", r.URL.String())
	}
	resp, err := b.to.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &brief{ReadCloser: resp.Body, left: maxProviderAnswer}
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
		return 0, fmt.Errorf("the provider's answer is longer than %d bytes", maxProviderAnswer)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		return n, fmt.Errorf("the provider's answer is longer than %d bytes", maxProviderAnswer)
	}
	return n, err
}
