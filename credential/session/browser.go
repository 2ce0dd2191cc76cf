package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"
)

const (
	callbackPath = "/callback"
	// pageTime bounds each request of the browser, and its wait for the provider's answer.
	pageTime = 30 * time.Second
)

var errNobodyCame = errors.New("nobody signed in with the browser in time")

// ByBrowser signs in by an authorization code with PKCE. open gets the URL that the person's browser must show. The
// provider sends the browser back to a port of loopback, which is open for that long. Source: RFC 8252; RFC 7636.
func (p *Provider) ByBrowser(ctx context.Context, open func(string)) (s *Session, err error) {
	if p.document.Authorization == "" {
		return nil, fmt.Errorf("%s: its document names no authorization_endpoint", p.settings.Issuer)
	}
	if c := p.document.Challenges; c != nil && !slices.Contains(c, "S256") {
		return nil, fmt.Errorf("%s: it has no PKCE with S256 (code_challenge_methods_supported), without which a code could be stolen", p.settings.Issuer)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	state, nonce, verifier := rand.Text(), rand.Text(), rand.Text()+rand.Text()
	back := &callback{host: l.Addr().String(), state: state, issuer: p.settings.Issuer, arrived: make(chan url.Values, 1),
		ended: make(chan struct{})}
	served := &http.Server{Handler: back, ReadHeaderTimeout: pageTime, ReadTimeout: pageTime, WriteTimeout: 2 * pageTime,
		MaxHeaderBytes: 32 << 10}
	ending := make(chan struct{})
	go func() {
		defer close(ending)
		_ = served.Serve(l) // the sign-in is over: how serving it ended says nothing
	}()
	defer func() {
		back.failed = err != nil
		close(back.ended)
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second) // the browser gets its answer
		defer cancel()
		if served.Shutdown(last) != nil {
			_ = served.Close()
		}
		<-ending
	}()
	redirect := "http://" + back.host + callbackPath
	challenge := sha256.Sum256([]byte(verifier))
	open(p.authorization(url.Values{
		"response_type": {"code"}, "client_id": {p.settings.ClientID}, "redirect_uri": {redirect}, "scope": {p.scopes()},
		"state": {state}, "nonce": {nonce}, "code_challenge_method": {"S256"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])},
	}))
	code, err := back.await(ctx)
	if err != nil {
		return nil, err
	}
	return p.redeem(ctx, url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {redirect},
		"code_verifier": {verifier}}, nonce)
}

// authorization returns the provider's page for a request.
func (p *Provider) authorization(request url.Values) string {
	u, _ := url.Parse(p.document.Authorization) // Discover has parsed it
	q := u.Query()
	for key, values := range request {
		q[key] = values
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// callback answers the browser that comes back from the provider. Any program of this machine can call it: what has not
// the state of this sign-in changes nothing. It redirects nowhere, and shows nothing of the request.
type callback struct {
	host, state, issuer string
	arrived             chan url.Values
	// ended is closed when the sign-in is over; failed, set before, says how.
	ended  chan struct{}
	failed bool
}

// ServeHTTP implements http.Handler.
func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	for key, value := range map[string]string{"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store",
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Content-Security-Policy": "default-src 'none'",
		"Connection": "close"} {
		h.Set(key, value)
	}
	say := func(status int, text string) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text+"\n") // a browser that is gone needs no answer
	}
	if r.Method != http.MethodGet || r.URL.Path != callbackPath || r.Host != c.host {
		say(http.StatusNotFound, "There is nothing here but the end of a sign-in by causewayctl.")
		return
	}
	q := r.URL.Query()
	if len(q["state"]) != 1 || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(c.state)) != 1 {
		say(http.StatusBadRequest, "The causewayctl that waits here did not begin this sign-in. It still waits for its own.")
		return
	}
	select {
	case c.arrived <- q:
	default: // one is enough
	}
	select {
	case <-c.ended:
	case <-r.Context().Done():
		return
	}
	if c.failed {
		say(http.StatusForbidden, "You are not signed in. The terminal says why.")
		return
	}
	say(http.StatusOK, "You are signed in. Close this tab and return to the terminal.")
}

// await returns the code with which the browser comes.
func (c *callback) await(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, errNobodyCame)
	defer cancel()
	var q url.Values
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case q = <-c.arrived:
	}
	switch {
	case q.Has("iss") && q.Get("iss") != c.issuer: // RFC 9207
		return "", fmt.Errorf("the browser comes from another identity provider, %.200q, not %s", q.Get("iss"), c.issuer)
	case q.Has("error"):
		return "", &RefusedError{Issuer: c.issuer, Code: q.Get("error"), Description: q.Get("error_description")}
	case len(q["code"]) != 1 || q.Get("code") == "":
		return "", fmt.Errorf("%s sends the browser back without a code", c.issuer)
	}
	return q.Get("code"), nil
}
