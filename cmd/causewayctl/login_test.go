package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestLoginAtOddProviders signs in at providers that misbehave. Each is refused with a reason, on one line that has
// nothing in it that a terminal would obey, and nothing is kept.
func TestLoginAtOddProviders(t *testing.T) {
	t.Parallel()
	key := oddKey(t)
	at := func(path string, then http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == path {
				then(w, r)
			}
			return r.URL.Path == path
		}
	}
	const discovery = "/.well-known/openid-configuration"
	for _, tt := range []struct {
		name, issuer string
		odd          func(*oddProvider)
		says         string
	}{
		{name: "another issuer", odd: func(p *oddProvider) { p.document["issuer"] = "https://idp.example" }, says: `issuer.*idp.example`},
		{name: "an issuer in plain text", issuer: "http://idp.example", says: "want an https URL"},
		{name: "an issuer that a terminal obeys", issuer: "https://idp.example/\x1b[2J", says: "want an https URL"},
		{name: "a token endpoint in plain text", odd: func(p *oddProvider) { p.document["token_endpoint"] = "http://idp.example/token" }, says: "token_endpoint.*want an https URL"},
		{name: "no token endpoint", odd: func(p *oddProvider) { p.document["token_endpoint"] = "" }, says: "names no token_endpoint"},
		{name: "no device codes", odd: func(p *oddProvider) { delete(p.document, "device_authorization_endpoint") }, says: "names no device_authorization_endpoint"},
		{name: "a huge document", odd: func(p *oddProvider) {
			p.answer = at(discovery, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte(" "), 2<<20)) })
		}, says: "longer than 1048576 bytes"},
		{name: "a huge refusal", odd: func(p *oddProvider) {
			p.answer = at(discovery, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = w.Write(bytes.Repeat([]byte("\x1b[31mx"), 100_000))
			})
		}, says: "500"},
		{name: "silence", odd: func(p *oddProvider) {
			p.answer = at(discovery, func(_ http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				panic(http.ErrAbortHandler) // to return would answer, with nothing
			})
		}, says: "did not answer in"},
		{name: "a document elsewhere", odd: func(p *oddProvider) {
			p.answer = at(discovery, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://idp.example/", http.StatusFound)
			})
		}, says: "redirects to another scheme or host"},
		{name: "tokens elsewhere", odd: func(p *oddProvider) {
			p.answer = at("/token", func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://idp.example/", http.StatusTemporaryRedirect)
			})
		}, says: "redirects to another scheme or host"},
		{name: "a code that a terminal obeys", odd: func(p *oddProvider) { p.device["user_code"] = "\x1b]0;x\x07" }, says: "its user_code is"},
		{name: "a code that reads backwards", odd: func(p *oddProvider) { p.device["user_code"] = "\u202eABCD" }, says: "its user_code is"},
		{name: "a page that is a script", odd: func(p *oddProvider) { p.device["verification_uri"] = "javascript:alert(1)" }, says: "its verification_uri is"},
		{name: "a page with a line of its own", odd: func(p *oddProvider) {
			p.device["verification_uri_complete"] = "https://idp.example/\ncausewayctl: done"
		}, says: "its verification_uri_complete is"},
		{name: "a refusal that a terminal obeys", odd: func(p *oddProvider) {
			p.answer = at("/token", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				_ = json.NewEncoder(w).Encode(map[string]string{"error": "access_denied", "error_description": "\x1b[2Jno\ncausewayctl: done"})
			})
		}, says: "refuses: access_denied:.*no causewayctl: done"},
		{name: "a client that it does not know", odd: func(p *oddProvider) {
			p.answer = at("/device", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"error": "invalid_client"}`)
			})
		}, says: "register the server's client ID at the provider as a public client"},
		{name: "a token for others", odd: func(p *oddProvider) { p.claims["aud"] = "others" }, says: "its ID token is not valid.*audience"},
		{name: "a token that has ended", odd: func(p *oddProvider) { p.claims["exp"] = 1 }, says: "its ID token is not valid.*expired"},
		{name: "keys of somebody else", odd: func(p *oddProvider) {
			p.answer = at("/keys", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"keys": []}`) })
		}, says: "its ID token is not valid"},
		{name: "no ID token", odd: func(p *oddProvider) {
			p.answer = at("/token", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"access_token": "a"}`) })
		}, says: "gives no ID token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, home := startOddProvider(t, key), t.TempDir()
			if tt.odd != nil {
				p.change(func() { tt.odd(p) })
			}
			if tt.issuer == "" {
				tt.issuer = p.URL
			}
			cmd := p.login(t.Context(), home, p.server(t, tt.issuer), "--device")
			said, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != exitFailed {
				t.Errorf("%v, want status %d", err, exitFailed)
			}
			if !matches(tt.says, string(said)) || bytes.ContainsAny(said, "\x1b\x07\u202e") || strings.Contains(string(said), "\ncausewayctl: done") || len(said) > 2000 {
				t.Errorf("it says %q, want %q on a line", said, tt.says)
			}
			if kept, err := os.ReadDir(filepath.Join(home, "causeway")); err == nil {
				t.Errorf("something is kept: %v", kept)
			}
		})
	}
}

// TestLoginByBrowserIsOnesOwn calls the port at which a browser comes back, as other programs of the machine can. They
// end nothing, are redirected nowhere, and learn nothing. The browser of the person then signs her in.
func TestLoginByBrowserIsOnesOwn(t *testing.T) {
	t.Parallel()
	p, home := startOddProvider(t, oddKey(t)), t.TempDir()
	server := p.server(t, p.URL)
	begin := func(t *testing.T) (back *url.URL, q url.Values, end func() (string, error)) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		t.Cleanup(cancel)
		cmd := p.login(ctx, home, server, "--browser")
		said := &bytes.Buffer{}
		cmd.Stdout = said
		errs, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(errs)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "https://") {
		}
		to, err := url.Parse(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		q = to.Query()
		if back, err = url.Parse(q.Get("redirect_uri")); err != nil || back.Hostname() != "127.0.0.1" {
			t.Fatalf("redirect_uri %v, %v", back, err)
		}
		return back, q, func() (string, error) {
			rest, _ := io.ReadAll(errs)
			err := cmd.Wait()
			return said.String() + string(rest), err
		}
	}
	call := func(t *testing.T, method, at, host string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			req.Host = host
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		if resp.Header.Get("Location") != "" || resp.Header.Get("Access-Control-Allow-Origin") != "" || bytes.Contains(body, []byte("evil")) {
			t.Errorf("%s: %v %s", at, resp.Header, body)
		}
		return resp.StatusCode, string(body)
	}

	back, q, end := begin(t)
	p.change(func() { p.nonce = q.Get("nonce") })
	state := q.Get("state")
	for _, c := range []struct{ method, query, path, host string }{
		{query: "code=evil&state=evil"}, {query: "code=evil"}, {query: "error=evil&state="}, {path: "/evil"}, {path: "//evil.example/"},
		{query: "state=" + state + "&state=evil&code=evil"}, {method: http.MethodPost, query: "code=evil&state=" + state},
		{query: "code=evil&state=" + state, host: "evil.example"}, {query: "redirect_uri=https://evil.example&state=x"},
	} {
		at := *back
		at.RawQuery = c.query
		if c.path != "" {
			at.Path = c.path
		}
		if status, _ := call(t, c.method, at.String(), c.host); status < 400 {
			t.Errorf("%+v is answered with %d", c, status)
		}
	}
	back.RawQuery = url.Values{"code": {"c"}, "state": {state}, "iss": {p.URL}}.Encode()
	if status, body := call(t, http.MethodGet, back.String(), ""); status != http.StatusOK || !strings.Contains(body, "You are signed in") {
		t.Errorf("the person's own browser: %d %s", status, body)
	}
	if said, err := end(); err != nil || !matches(`user +oidc:nora`, said) {
		t.Errorf("%v: %s", err, said)
	}

	for name, query := range map[string]url.Values{
		"another identity provider": {"code": {"c"}, "iss": {"https://idp.example"}},
		"a token of another":        {"code": {"c"}},
		"refuses: access_denied":    {"error": {"access_denied"}},
		"without a code":            {},
	} {
		back, q, end := begin(t)
		p.change(func() { p.claims["nonce"] = "another" })
		query.Set("state", q.Get("state"))
		back.RawQuery = query.Encode()
		if status, body := call(t, http.MethodGet, back.String(), ""); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if said, err := end(); err == nil || !strings.Contains(strings.ReplaceAll(said, "an ID token of another", "a token of another"), name) {
			t.Errorf("%s: %v: %s", name, err, said)
		}
	}
	p.change(func() { p.document["code_challenge_methods_supported"] = []string{"plain"} })
	if said, err := p.login(t.Context(), home, server, "--browser").CombinedOutput(); err == nil || !strings.Contains(string(said), "no PKCE with S256") {
		t.Errorf("without PKCE: %v: %s", err, said)
	}
}

func matches(pattern, text string) bool {
	return regexp.MustCompile(pattern).MatchString(text)
}
