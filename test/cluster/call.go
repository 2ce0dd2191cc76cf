package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffetls/tlsconfig"
)

// ErrRefused reports that the other side accepted the connection and ended it without a response.
var ErrRefused = errors.New("the connection was refused")

const callTimeout = 20 * time.Second

// Client calls inbounds with one identity. It is safe for concurrent use. Close it after use.
type Client struct {
	id     *Identity
	http   *http.Client
	config *tls.Config
}

// NewClient returns a client that speaks HTTP/2 if http2 is set, and HTTP/1.1 otherwise. It accepts a server only with
// a certificate of one of the mesh's trust domains.
func NewClient(id *Identity, http2 bool) *Client {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	tlsconfig.HookTLSClientConfig(config, id.Bundles, tlsconfig.AuthorizeAny())
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &id.Certificate, nil }
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	transport := &http.Transport{TLSClientConfig: config.Clone(), Protocols: protocols, TLSHandshakeTimeout: callTimeout}
	return &Client{id: id, config: config, http: &http.Client{Transport: transport, Timeout: callTimeout}}
}

// ID returns the client's SPIFFE ID.
func (c *Client) ID() string { return c.id.SpiffeID }

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get calls an HTTP inbound on a loopback port and returns the status and the body of the response.
func (c *Client) Get(ctx context.Context, port int, path string) (int, string, error) {
	return c.Do(ctx, http.MethodGet, port, path)
}

// Do is Get for any method, without a body.
func (c *Client) Do(ctx context.Context, method string, port int, path string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("https://127.0.0.1:%d%s", port, path), nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(body), err
}

// Echo opens a TLS connection to a TCP inbound, sends a line and expects it back. It returns ErrRefused if the
// connection ends instead.
func (c *Client) Echo(ctx context.Context, port int) error {
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: callTimeout}, Config: c.config.Clone()}
	conn, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	return echo(conn)
}

// PlainEcho is Echo without TLS.
func PlainEcho(ctx context.Context, port int) error {
	conn, err := (&net.Dialer{Timeout: callTimeout}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	return echo(conn)
}

// PlainGet calls an inbound with HTTP/1.1 without TLS.
func PlainGet(ctx context.Context, port int) (int, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: callTimeout}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", port), nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return resp.StatusCode, nil
}

func echo(conn net.Conn) error {
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return err
	}
	const line = "ping\n"
	if _, err := io.WriteString(conn, line); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	got := make([]byte, len(line))
	if _, err := io.ReadFull(conn, got); err != nil {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return fmt.Errorf("no answer: %w", err)
		}
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if string(got) != line {
		return fmt.Errorf("sent %q, got %q", line, got)
	}
	return nil
}
