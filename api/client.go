package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/causeway-mesh/causeway/printing"
)

// ClientConfig configures the connection to a server.
type ClientConfig struct {
	// Address is the server's URL: http://127.0.0.1:5681. Without a scheme, it means http.
	Address string
	// Token is the bearer token. An empty one is not sent.
	Token string
	// TokenSource, if set, is called for the token of each request, in place of Token. Several goroutines may call it at
	// once.
	TokenSource func(context.Context) (string, error)
	// Dial, if set, makes the connections, in place of the system and of a proxy.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS configures https. If nil, the client verifies against the system's roots.
	TLS *tls.Config
	// Timeout bounds one request. Default: 30 s.
	Timeout time.Duration
	// UserAgent is sent with each request. Default: causeway.
	UserAgent string
	// Diagnostics means that Address is that of a server's diagnostics, whose responses have no ServerHeader.
	Diagnostics bool
	// LeftOut, if set, is called for each response that omits resources that the caller may not read, with their
	// number. Several goroutines may call it at once.
	LeftOut func(path string, n int)
	// Warned, if set, is called for each warning in a response. Several goroutines may call it at once.
	Warned func(path, text string)
}

// Client calls the HTTP API. It is safe for concurrent use. Errors that the server reports are *Error. Later reads of a
// client include its earlier writes, even if different replicas of a server handle its requests.
type Client struct {
	config ClientConfig
	base   *url.URL
	http   *http.Client
	// wrote is the revision of the last acknowledged write.
	wrote atomic.Uint64
	// earlier is true once the server is known to be of a version that does not send ServerHeader.
	earlier atomic.Bool
}

const (
	defaultTimeout = 30 * time.Second
	// maxAnswerBytes bounds the bytes that a client reads of one response, maxErrorBytes those of an error.
	maxAnswerBytes = 256 << 20
	maxErrorBytes  = 1 << 20
	// maxErrorText bounds each printed text of an error or a warning, in bytes, and maxErrorTexts their number.
	maxErrorText  = 4096
	maxErrorTexts = 1000
)

// NewClient returns a client. It fails if the address is not a URL, or contains a credential.
func NewClient(c ClientConfig) (*Client, error) {
	if !strings.Contains(c.Address, "://") {
		c.Address = "http://" + c.Address
	}
	base, err := url.Parse(strings.TrimSuffix(c.Address, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the address of a server: want http://HOST:PORT or https://HOST:PORT", c.Address)
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("the address of %s has a user, a query or a fragment: want http://HOST:PORT or https://HOST:PORT", base.Host)
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.UserAgent == "" {
		c.UserAgent = "causeway"
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = c.TLS
	if c.Dial != nil {
		transport.DialContext, transport.Proxy = c.Dial, nil
	}
	return &Client{config: c, base: base, http: &http.Client{Timeout: c.Timeout, Transport: transport,
		CheckRedirect: stay}}, nil
}

// stay follows no redirect. Servers send none. A redirect could make another server perform the request with the rights
// that the caller has there, such as those of a program on its machine.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// CloseIdleConnections closes the idle connections of the client.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// Request is one call.
type Request struct {
	// Method defaults to GET.
	Method string
	// Path begins with a slash. Its parts are escaped.
	Path  string
	Query url.Values
	// Body is sent as ContentType, which defaults to application/json.
	Body        []byte
	ContentType string
	// IfMatch is the tag that the resource must still have, as returned by Tagged. Empty means any.
	IfMatch string
}

// Do sends one request and returns the body of the response. A status of 400 and above is an *Error.
func (c *Client) Do(ctx context.Context, r Request) ([]byte, error) {
	raw, _, err := c.Tagged(ctx, r)
	return raw, err
}

// Tagged is Do that also returns the response's entity tag, or "" from older servers, which send none.
func (c *Client) Tagged(ctx context.Context, r Request) (raw []byte, tag string, err error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return nil, "", err
	}
	if r.IfMatch != "" {
		req.Header.Set(ifMatch, r.IfMatch)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", c.base.Host, err)
	}
	defer resp.Body.Close()
	if err := c.recognise(ctx, resp); err != nil {
		return nil, "", err
	}
	if raw, err = c.read(resp); err != nil {
		return nil, "", err
	}
	if revision, err := strconv.ParseUint(resp.Header.Get(RevisionHeader), 10, 64); err == nil {
		c.AtLeast(revision)
	}
	if c.config.Warned != nil {
		warnings := warningsIn(resp.Header)
		for _, text := range warnings[:min(len(warnings), maxErrorTexts)] {
			c.config.Warned(r.Path, bounded(text))
		}
	}
	if c.config.LeftOut != nil {
		if n := leftOutOf(raw); n > 0 {
			c.config.LeftOut(r.Path, n)
		}
	}
	return raw, resp.Header.Get(tagHeader), nil
}

// read returns the body of a successful response. Other responses are errors.
func (c *Client) read(resp *http.Response) ([]byte, error) {
	limit := int64(maxAnswerBytes)
	if resp.StatusCode >= http.StatusMultipleChoices {
		limit = maxErrorBytes
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: read the answer: %w", c.base.Host, err)
	case resp.StatusCode >= http.StatusBadRequest:
		return nil, answeredError(resp.StatusCode, raw[:min(int64(len(raw)), limit)])
	case resp.StatusCode >= http.StatusMultipleChoices:
		return nil, fmt.Errorf("%s: redirects to %q, which is not followed: no Causeway server redirects; give the final address", c.base.Host, bounded(resp.Header.Get("Location")))
	case int64(len(raw)) > limit:
		return nil, fmt.Errorf("%s: the response exceeds %d MiB: request less", c.base.Host, limit>>20)
	}
	return raw, nil
}

// bounded truncates a text of another server.
func bounded(s string) string {
	if len(s) <= maxErrorText {
		return s
	}
	return strings.ToValidUTF8(s[:maxErrorText], "") + "..."
}

// AtLeast makes later reads wait until the server has the revision. A lower revision than before has no effect.
func (c *Client) AtLeast(revision uint64) {
	for {
		before := c.wrote.Load()
		if revision <= before || c.wrote.CompareAndSwap(before, revision) {
			return
		}
	}
}

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	if revision := c.wrote.Load(); revision > 0 && !changes(r.Method) {
		query := url.Values{revisionQuery: {strconv.FormatUint(revision, 10)}}
		maps.Copy(query, r.Query)
		r.Query = query
	}
	target := c.base.String() + r.Path
	if len(r.Query) > 0 {
		separator := "?"
		if strings.Contains(r.Path, "?") {
			separator = "&"
		}
		target += separator + r.Query.Encode()
	}
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, target, body)
	if err != nil {
		return nil, err
	}
	if r.Body != nil {
		if r.ContentType == "" {
			r.ContentType = "application/json"
		}
		req.Header.Set("Content-Type", r.ContentType)
	}
	if c.config.Diagnostics && c.config.Dial != nil {
		req.Host = "localhost" // a tunnel ends at the server's loopback, where its diagnostics answer to no other name
	}
	req.Header.Set("User-Agent", c.config.UserAgent)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header)) // no effect unless ctx is traced
	token := c.config.Token
	if c.config.TokenSource != nil {
		if token, err = c.config.TokenSource(ctx); err != nil {
			return nil, err
		}
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

// answeredError reads the error object. A response of another shape is converted to one.
func answeredError(status int, raw []byte) error {
	e := &Error{}
	if json.Unmarshal(raw, e) != nil || e.Title == "" {
		e = NewError(status, http.StatusText(status), strings.TrimSpace(string(raw)))
	}
	e.Status = status
	// The text is from another server and the caller prints it in its own output: no line may look like the caller's.
	e.Title, e.Detail = printing.Line(bounded(e.Title)), printing.Line(bounded(e.Detail))
	e.InvalidParameters = e.InvalidParameters[:min(len(e.InvalidParameters), maxErrorTexts)]
	for i := range e.InvalidParameters {
		p := &e.InvalidParameters[i]
		p.Field, p.Reason = printing.Line(bounded(p.Field)), printing.Line(bounded(p.Reason))
	}
	return e
}

// JSON is Do for a JSON response, decoded into v. A nil v discards it.
func (c *Client) JSON(ctx context.Context, r Request, v any) error {
	raw, err := c.Do(ctx, r)
	if err != nil || v == nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s %s: unexpected response: %w", c.base.Host, r.Path, err)
	}
	return nil
}
