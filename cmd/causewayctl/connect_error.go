package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kubernetes/portforward"
)

// explainTransport adds advice to an error of the connection, not of the server.
func explainTransport(address string, err error) error {
	var answer *api.Error
	if errors.As(err, &answer) && answer.Status == http.StatusBadRequest && strings.Contains(answer.Detail, "HTTP request to an HTTPS server") {
		return &advised{fmt.Errorf("%s speaks TLS", address), "use an https:// address; as the server's user or root of its machine, --config DATA-DIR/context.yaml has all of it"}
	}
	if forward := (*portforward.Error)(nil); errors.As(err, &forward) {
		what := forward.What
		if e := (*url.Error)(nil); forward.Established && errors.As(err, &e) {
			what += unknownIn(e)
		}
		return &advised{errors.New(what), forward.Advice}
	}
	var transport *url.Error
	if !errors.As(err, &transport) || errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &advised{fmt.Errorf("%s did not answer in time%s", address, unknownIn(transport)),
			"--timeout allows more; is it the HTTP API's address?"}
	}
	const where = "give the address of the control plane: --address URL, or " + addressEnv + " in the environment"
	var dns *net.DNSError
	var unknownCA x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return &advised{fmt.Errorf("nothing listens at %s: %w", address, errNothingListens),
			"start it (causeway-global run), or " + where}
	case errors.As(err, &dns):
		return &advised{fmt.Errorf("%s: unknown host %q", address, dns.Name), where}
	case errors.As(err, &unknownCA):
		return &advised{fmt.Errorf("%s: a CA that is not trusted here signed its certificate", address),
			"give the server's CA by --ca FILE or " + caEnv + "; in the server's data directory it is kds-tls/ca.crt of a global, tls/ca.crt of a zone"}
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return &advised{fmt.Errorf("%s speaks plain HTTP", address), "use an http:// address"}
	case strings.Contains(err.Error(), "malformed HTTP response"):
		return &advised{fmt.Errorf("%s does not speak HTTP", address),
			"check that it is the address of the HTTP API, and whether it is http or https " + where}
	case !strings.HasPrefix(address, "https:") && isClosed(err):
		return &advised{fmt.Errorf("%s closed the connection without an answer%s", address, unknownIn(transport)),
			"a port that speaks TLS does so: use an https:// address, with --ca FILE or " + caEnv + " if its CA is not trusted here, and check that it is the address of the HTTP API"}
	default:
		return &advised{fmt.Errorf("%s: %w%s", address, transport.Err, unknownIn(transport)), where}
	}
}

// isClosed reports whether the other side ended the connection instead of answering.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// aboutContext says of a server that is not there that a context names it.
func (c *cli) aboutContext(err error) error {
	var a *advised
	if !c.context.chosen || !errors.As(err, &a) || !errors.Is(err, errNothingListens) {
		return err
	}
	return &advised{a.err, a.advice + "\n  a context names this address (causewayctl config get-contexts); --context NAME asks another server"}
}

// errNothingListens reports that a connection was refused.
var errNothingListens = errors.New("connection refused")

// unknownIn returns the part of an error message that says that an unanswered request may have changed something. It is
// empty for a request that only reads.
func unknownIn(e *url.Error) string {
	if e.Op == "Get" || e.Op == "Head" {
		return ""
	}
	return "; it is unknown whether anything was changed"
}
