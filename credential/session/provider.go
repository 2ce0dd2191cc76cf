package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/causeway-mesh/causeway/credential/provider"
)

// Settings name an identity provider.
type Settings struct {
	// Issuer is the provider's URL, https, and ClientID the audience of its tokens.
	Issuer, ClientID string
	// CAFile is a PEM file of the authorities of the provider's certificate; the system's when empty.
	CAFile string
}

// Provider is an identity provider that has said what it offers.
type Provider struct {
	settings Settings
	http     *http.Client
	verifier *oidc.IDTokenVerifier
	document document
}

// document is what a provider publishes, as far as it matters here. Source: OpenID Connect Discovery 1.0, section 3; RFC
// 8414, section 2; RFC 8628, section 4.
type document struct {
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Device        string   `json:"device_authorization_endpoint"`
	Revocation    string   `json:"revocation_endpoint"`
	Scopes        []string `json:"scopes_supported"`
	Challenges    []string `json:"code_challenge_methods_supported"`
}

// maxText bounds the text of a provider in an error, in bytes.
const maxText = 300

// Discover asks a provider for its document. What the document names must be https.
func Discover(ctx context.Context, s Settings) (*Provider, error) {
	if !plainURL(s.Issuer) {
		return nil, fmt.Errorf("the server names the identity provider %.200q: want an https URL", s.Issuer)
	}
	if s.ClientID == "" {
		return nil, errors.New("the server names no client ID for its identity provider")
	}
	client, err := provider.Client("--provider-ca", s.CAFile, nil)
	if err != nil {
		return nil, err
	}
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, client), s.Issuer)
	if err != nil {
		return nil, about(s.Issuer, err)
	}
	p := &Provider{settings: s, http: client, verifier: found.Verifier(&oidc.Config{ClientID: s.ClientID,
		SupportedSigningAlgs: provider.Algorithms()})}
	if err := found.Claims(&p.document); err != nil {
		return nil, about(s.Issuer, err)
	}
	for field, at := range map[string]string{"authorization_endpoint": p.document.Authorization, "token_endpoint": p.document.Token,
		"device_authorization_endpoint": p.document.Device, "revocation_endpoint": p.document.Revocation} {
		if at != "" && !plainURL(at) {
			return nil, fmt.Errorf("%s: its %s is %.200q: want an https URL", s.Issuer, field, at)
		}
	}
	if p.document.Token == "" {
		return nil, fmt.Errorf("%s: its document names no token_endpoint", s.Issuer)
	}
	return p, nil
}

// plainURL reports whether a text is an https URL that can be shown and opened as it is.
func plainURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && len(text) <= 2048 &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// OffersDevice reports whether the provider gives codes that a person enters elsewhere.
func (p *Provider) OffersDevice() bool { return p.document.Device != "" }

// scopes are what tokens are asked to say. The claims that name users and groups, and a refresh token, have scopes of
// their own where the provider lists them.
func (p *Provider) scopes() string {
	out := []string{oidc.ScopeOpenID}
	for _, scope := range []string{"profile", "email", "groups", oidc.ScopeOfflineAccess} {
		if slices.Contains(p.document.Scopes, scope) {
			out = append(out, scope)
		}
	}
	return strings.Join(out, " ")
}

// RefusedError is a refusal by the provider. Source: RFC 6749, section 5.2; RFC 8628, section 3.5.
type RefusedError struct {
	// Issuer is the provider; Code its word for the reason, and Description its text for people, which may be empty.
	Issuer, Code, Description string
}

// Error implements error.
func (e *RefusedError) Error() string {
	text := fmt.Sprintf("%s refuses: %s", e.Issuer, bounded(e.Code))
	if e.Description != "" {
		text += ": " + bounded(e.Description)
	}
	return text
}

// post sends a form to one of the provider's endpoints and decodes the answer.
func (p *Provider) post(ctx context.Context, endpoint string, form url.Values, into any) error {
	form.Set("client_id", p.settings.ClientID)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := p.http.Do(req)
	if err != nil {
		return about(p.settings.Issuer, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body) // the client bounds it
	if err != nil {
		return about(p.settings.Issuer, err)
	}
	if resp.StatusCode != http.StatusOK {
		var refusal struct {
			Code        string `json:"error"`
			Description string `json:"error_description"`
		}
		if json.Unmarshal(raw, &refusal) != nil || refusal.Code == "" {
			return fmt.Errorf("%s answers %s", p.settings.Issuer, bounded(resp.Status))
		}
		return &RefusedError{Issuer: p.settings.Issuer, Code: refusal.Code, Description: refusal.Description}
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: its answer is not JSON of the form that OAuth 2.0 wants: %s", p.settings.Issuer, bounded(err.Error()))
	}
	return nil
}

// about names the provider in an error, whose text may come from it.
func about(issuer string, err error) error {
	var request *url.Error
	if errors.As(err, &request) { // its URL is known
		err = request.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s did not answer in time", issuer)
	}
	return &textError{fmt.Sprintf("%s: %s", issuer, bounded(err.Error())), err}
}

// textError is an error with another text.
type textError struct {
	text string
	err  error
}

func (e *textError) Error() string { return e.text }
func (e *textError) Unwrap() error { return e.err }

// bounded returns a text that others wrote as a short one of one line.
func bounded(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return text
}
