package abuse

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// attempts are attempts that are not one HTTP request. Each returns how it ended: a gRPC code, a status, or "ok"; and a
// text that is compared with Says. A function must not call t.Fatal for the behaviour of the other side.
var attempts = map[string]func(context.Context, *world, *aServer, side) (status, says string, err error){
	"tls":    tlsAttempt,
	"plain":  plainAttempt,
	"twoway": twoHeadersAttempt,
	"xds":    xdsAttempt,
	"named":  namedAttempt,
}

// attemptTimeout limits one attempt.
const attemptTimeout = 30 * time.Second

// try runs one side of a row.
func (w *world) try(s *aServer, one side) (status, says string, err error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), attemptTimeout)
	defer cancel()
	if one.Do != "" {
		f, ok := attempts[one.Do]
		if !ok {
			return "", "", errors.New("there is no attempt " + one.Do)
		}
		return f(ctx, w, s, one)
	}
	return httpAttempt(ctx, w, s, one)
}

// httpAttempt sends the request exactly as written: nothing cleans its path. {long} in it stands for 9000 letters. In
// headers, {own} is the address of the server and {large} stands for 100 kB; each line is a header of its own. `with: {beside: NAME}` adds a client
// certificate to the token, `with: {port: diagnostics}` asks another port.
func httpAttempt(ctx context.Context, w *world, s *aServer, one side) (status, says string, err error) {
	method, target, _ := strings.Cut(one.Request, " ")
	base := s.url
	if port := one.With["port"]; port != "" {
		base = "http://" + s.addresses[port]
	}
	req, err := http.NewRequestWithContext(ctx, method, base, strings.NewReader(one.Body))
	if err != nil {
		return "", "", err
	}
	path, query, _ := strings.Cut(strings.ReplaceAll(target, "{long}", strings.Repeat("a", 9000)), "?")
	req.URL = &url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Opaque: path, RawQuery: query}
	if one.Body != "" {
		req.Header.Set("Content-Type", "application/yaml")
	}
	c := w.of(s, one.As)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	for name, value := range one.Headers {
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Del(name)
		for _, line := range strings.Split(value, "\n") {
			req.Header.Add(name, strings.NewReplacer("{own}", req.URL.Host, "{large}",
				strings.Repeat("x", 100<<10)).Replace(line))
		}
	}
	if beside := one.With["beside"]; beside != "" {
		c.certificate = w.of(s, beside).certificate
	}
	return send(s, c, req)
}

func send(s *aServer, c credential, req *http.Request) (status, says string, err error) {
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: s.tls()}
	if c.certificate != nil && transport.TLSClientConfig != nil {
		// Like a browser or an attacker: regardless of the authorities that the server names.
		transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.certificate, nil }
	}
	client := &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := io.Copy(&body, io.LimitReader(resp.Body, 1<<20)); err != nil {
		return "", "", err
	}
	return strconv.Itoa(resp.StatusCode), body.String(), nil
}

// tlsAttempt uses the TLS version in `with`.
func tlsAttempt(ctx context.Context, _ *world, s *aServer, one side) (status, says string, err error) {
	config := s.tls()
	versions := map[string]uint16{"1.0": tls.VersionTLS10, "1.1": tls.VersionTLS11, "1.2": tls.VersionTLS12,
		"1.3": tls.VersionTLS13}
	version := versions[one.With["version"]]
	config.MinVersion, config.MaxVersion = version, version
	if suite := one.With["cipher"]; suite != "" {
		for _, known := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
			if known.Name == suite {
				config.CipherSuites = []uint16{known.ID}
			}
		}
	}
	address := strings.TrimPrefix(s.url, "https://")
	if port := one.With["port"]; port != "" {
		address = s.addresses[port]
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "refused", err.Error(), nil
	}
	defer conn.Close()
	return "ok", "", nil
}

// plainAttempt speaks plaintext HTTP to a TLS port. The twin, with `tls: yes`, speaks TLS.
func plainAttempt(ctx context.Context, w *world, s *aServer, one side) (status, says string, err error) {
	plain := *s
	if one.With["tls"] == "" {
		plain.url = strings.Replace(s.url, "https://", "http://", 1)
	}
	one.Do = ""
	return httpAttempt(ctx, w, &plain, one)
}

// twoHeadersAttempt sends two Authorization headers. The twin sends one.
func twoHeadersAttempt(ctx context.Context, w *world, s *aServer, one side) (status, says string, err error) {
	method, target, _ := strings.Cut(one.Request, " ")
	req, err := http.NewRequestWithContext(ctx, method, s.url+target, nil)
	if err != nil {
		return "", "", err
	}
	for _, name := range strings.Fields(one.With["tokens"]) {
		req.Header.Add("Authorization", "Bearer "+w.of(s, name).token)
	}
	return send(s, credential{}, req)
}
