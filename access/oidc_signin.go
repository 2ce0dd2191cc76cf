package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
)

// SignIn tells a browser how to get an ID token from the identity provider: by an authorization code with PKCE, as a
// public client. Source: RFC 7636; OpenID Connect Core, section 3.1.
type SignIn struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientId"`
	// Authorization and Token are the provider's endpoints, https.
	Authorization string   `json:"authorizationEndpoint"`
	Token         string   `json:"tokenEndpoint"`
	Scopes        []string `json:"scopes"`
}

// errNoSignIn reports a provider that does not issue tokens for a code from a browser.
var errNoSignIn = errors.New("the identity provider's document names no authorization endpoint or no token endpoint")

// signInScopes are the scopes with the claims that name users and groups, where the provider has them.
var signInScopes = []string{"profile", "email", "groups"}

// SignIn returns how browsers sign in, or nil if no provider is configured. Until the provider has answered once, each
// call may ask it, one at a time and at most every 5 s. Errors are those of the provider.
func (g *Guard) SignIn(ctx context.Context) (*SignIn, error) {
	v, ok := g.config.OIDC.(*oidcVerifier)
	if !ok {
		return nil, nil //nolint:nilnil // there is none
	}
	found, err := v.provider(ctx)
	if err != nil {
		return nil, err
	}
	return found.signIn, found.noSignIn
}

// readSignIn reads the provider's endpoints out of its document.
func readSignIn(s OIDCSettings, provider *oidc.Provider) (*SignIn, error) {
	out := &SignIn{Issuer: s.Issuer, ClientID: s.ClientID, Authorization: provider.Endpoint().AuthURL,
		Token: provider.Endpoint().TokenURL, Scopes: []string{oidc.ScopeOpenID}}
	if out.Authorization == "" || out.Token == "" {
		return nil, errNoSignIn
	}
	for field, at := range map[string]string{"authorization_endpoint": out.Authorization, "token_endpoint": out.Token} {
		if u, err := url.Parse(at); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
			return nil, fmt.Errorf("the provider's %s is %.200q: want an https URL", field, at)
		}
	}
	var document struct {
		Scopes json.RawMessage `json:"scopes_supported"`
	}
	var supported []string
	if err := provider.Claims(&document); err == nil && document.Scopes != nil {
		_ = json.Unmarshal(document.Scopes, &supported) // if it is not a list, only openid is supported
	}
	for _, scope := range signInScopes {
		if slices.Contains(supported, scope) {
			out.Scopes = append(out.Scopes, scope)
		}
	}
	return out, nil
}
