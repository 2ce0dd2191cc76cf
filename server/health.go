package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Health pages of the diagnostics port.
const (
	LivePage  = "/livez"
	ReadyPage = "/readyz"
)

// maxAnswer bounds the bytes read of a response.
const maxAnswer = 4 << 10

// ErrUnhealthy reports that a server responds but is not healthy.
var ErrUnhealthy = errors.New("the server is not healthy")

// AskHealth requests a page, LivePage or ReadyPage, from the diagnostics port of a server on this machine. address is
// the server's listen address, host:port; for a wildcard address, AskHealth uses loopback. Like the server, it uses TLS
// for an address that other machines can reach; on the same machine it need not verify the certificate. Errors:
// ErrUnhealthy with the server's response, and connection errors.
func AskHealth(ctx context.Context, address, page string) error {
	where, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return fmt.Errorf("diagnostics address: %w", err)
	}
	if where.Port == 0 {
		return fmt.Errorf("diagnostics address %q: with port 0 the server's port is unknown: give a port",
			address)
	}
	scheme := "https"
	if IsLoopback(where) {
		scheme = "http"
	}
	if len(where.IP) == 0 || where.IP.IsUnspecified() {
		where.IP = net.IPv4(127, 0, 0, 1)
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}, //nolint:gosec // the port is this machine's own, and nothing secret is sent
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+where.String()+page, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s: %s", ErrUnhealthy, page, strings.TrimSpace(string(said)))
	}
	return nil
}

// alive checks within the given time that the server at a responds, as a service manager would.
func alive(ctx context.Context, a net.Addr, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return AskHealth(ctx, a.String(), LivePage) == nil
}
