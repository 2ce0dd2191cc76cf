package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// isURL reports whether -f names a URL.
func isURL(source string) bool {
	return strings.HasPrefix(source, "https://") || strings.HasPrefix(source, "http://")
}

// maxRedirects bounds the redirects of a URL.
const maxRedirects = 5

// readURL reads one byte more than documents may have. It sends no credential, follows no redirect from https to http,
// and reveals to nobody where it was redirected from.
func (c *cli) readURL(ctx context.Context, source string) ([]byte, error) {
	at, err := url.Parse(source)
	if err != nil || at.Host == "" || at.User != nil {
		return nil, usagef("-f %q: want a URL with a host and without a user", source)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, source, http.NoBody)
	if err != nil {
		return nil, usagef("-f %w", err)
	}
	client := &http.Client{CheckRedirect: func(next *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return fmt.Errorf("more than %d redirects", maxRedirects)
		case via[0].URL.Scheme == "https" && next.URL.Scheme != "https":
			return errors.New("redirects from https to http")
		}
		next.Header.Del("Referer") // the query of a URL may be a secret
		return nil
	}}
	resp, err := client.Do(req) //nolint:gosec // the user names it
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err // not the server of --address: its advice would mislead
		}
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: the answer is %s, want 200", source, resp.Status)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/html" {
		return nil, fmt.Errorf("%s: the answer is a page for people (text/html): want the address of the file itself", source)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, resources.MaxDocumentBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return raw, nil
}
