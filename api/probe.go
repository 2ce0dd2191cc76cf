package api

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"
)

// Probe holds what one small request reveals about a server besides its response.
type Probe struct {
	// Date is the server's clock when it responded, in whole seconds. It is zero if the response has none.
	Date time.Time
	// Asked is when the request was sent, by the local clock. Took is the time until the response, including the
	// connection.
	Asked time.Time
	Took  time.Duration
	// Certificates are the certificates that the server presented, its own first. There are none over plain HTTP.
	Certificates []*x509.Certificate
}

// Skew returns how far the server's clock is ahead of the local one. It is negative if the clock is behind. The error
// is up to a second plus the time of the response.
func (p *Probe) Skew() time.Duration {
	if p.Date.IsZero() {
		return 0
	}
	return p.Date.Add(time.Second / 2).Sub(p.Asked.Add(p.Took / 2))
}

// Probe requests `GET /` over a new connection. A response of any status is valid.
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
