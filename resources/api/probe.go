package api

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"
)

// Probe is what one small request tells about a server beside its answer.
type Probe struct {
	// Date is the server's clock when it answered, in whole seconds; zero when it did not say.
	Date time.Time
	// Asked and Took are when the request was sent, by our clock, and how long the answer took, the connection included.
	Asked time.Time
	Took  time.Duration
	// Certificates are those that the server showed, its own first; none over plain HTTP.
	Certificates []*x509.Certificate
}

// Skew is how far the server's clock is ahead of ours; negative when it is behind. It is known to a second and the time that the
// answer took.
func (p *Probe) Skew() time.Duration {
	if p.Date.IsZero() {
		return 0
	}
	return p.Date.Add(time.Second / 2).Sub(p.Asked.Add(p.Took / 2))
}

// Probe asks for `GET /` over a new connection. An answer of any status is one.
func (c *Client) Probe(ctx context.Context) (*Probe, error) {
	req, err := c.request(ctx, Request{Path: "/"})
	if err != nil {
		return nil, err
	}
	c.http.CloseIdleConnections()
	p := &Probe{Asked: time.Now()}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.base.Host, err)
	}
	defer resp.Body.Close()
	p.Took = time.Since(p.Asked)
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		p.Date = date
	}
	if resp.TLS != nil {
		p.Certificates = resp.TLS.PeerCertificates
	}
	return p, nil
}
