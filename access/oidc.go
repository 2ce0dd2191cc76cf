package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// OIDCSettings configure an identity provider whose ID tokens authenticate users.
type OIDCSettings struct {
	// Issuer is the provider's URL, https; its discovery document is under it. Empty means none.
	Issuer string
	// ClientID is the audience that tokens must be for. Required with Issuer.
	ClientID string
	// UserClaim and GroupsClaim are the claims with the user's name and groups; "sub" and "groups" when empty.
	UserClaim, GroupsClaim string
	// Prefix precedes the names of users and groups, so that they match no others: "oidc:" when empty.
	Prefix string
	// CAFile is a PEM file of the authorities of the provider's certificate; the system's when empty.
	CAFile string
}

const (
	// oidcTimeout bounds each request to the provider.
	oidcTimeout = 10 * time.Second
	// oidcRetry is the wait before a provider that did not answer is asked again.
	oidcRetry = 5 * time.Second
)

// oidcAlgorithms are the signatures that are accepted: none that uses a shared secret.
var oidcAlgorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256,
	oidc.PS384, oidc.PS512, oidc.EdDSA}

// oidcVerifier verifies ID tokens. The provider is looked for when the first token comes, so that a server starts
// without it.
type oidcVerifier struct {
	settings OIDCSettings
	client   *http.Client
	now      func() time.Time

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier // guarded by mu
	failed   error                 // guarded by mu: why there is none
	retry    time.Time             // guarded by mu
	// signIn is how browsers sign in, once verifier is set; noSignIn says why they cannot.
	signIn   *SignIn // guarded by mu
	noSignIn error   // guarded by mu
}

func newOIDC(_ context.Context, s OIDCSettings, now func() time.Time) (*oidcVerifier, error) {
	if now == nil {
		now = time.Now
	}
	u, err := url.Parse(s.Issuer)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("OIDC issuer %q: want an https URL, as the provider's discovery document spells it", s.Issuer)
	}
	if s.ClientID == "" {
		return nil, errors.New("OIDC: the client ID is missing: tokens need an audience")
	}
	s.UserClaim, s.GroupsClaim, s.Prefix = cmp.Or(s.UserClaim, "sub"), cmp.Or(s.GroupsClaim, "groups"),
		cmp.Or(s.Prefix, "oidc:")
	if Reserved(s.Prefix) || strings.HasPrefix(ReservedPrefix, s.Prefix) { // the rest may come from the provider: "mesh-", and the group "system:admin"
		return nil, fmt.Errorf("OIDC prefix %q: names that begin with %s are reserved for the server, and with this prefix the provider's names could begin so: choose another, such as %q", s.Prefix, ReservedPrefix, "oidc:")
	}
	client, err := clientFor(s.CAFile, now)
	if err != nil {
		return nil, fmt.Errorf("OIDC CA: %w", err)
	}
	return &oidcVerifier{settings: s, client: client, now: now}, nil
}

// Verify implements Verifier.
func (v *oidcVerifier) Verify(r *http.Request, token string) (Subject, error) {
	refuse := func(reason, hint string) (Subject, error) {
		return Subject{}, &LoginError{Method: ByOIDC, Reason: reason, Hint: hint}
	}
	if err := v.worthVerifying(token, v.now()); err != nil {
		return refuse("ID token: "+err.Error(), "the ID token is not valid here")
	}
	verifier, err := v.provider()
	if err != nil {
		return refuse("the identity provider is unavailable: "+err.Error(),
			"the identity provider is unavailable: try again later")
	}
	id, err := verifier.Verify(oidc.ClientContext(r.Context(), v.client), token)
	if err != nil {
		return refuse("ID token: "+err.Error(), "the ID token is not valid here")
	}
	var claims map[string]any
	if err := id.Claims(&claims); err != nil {
		return refuse("ID token: "+err.Error(), "the ID token is not valid here")
	}
	name, _ := claims[v.settings.UserClaim].(string)
	if name == "" {
		return refuse("the ID token has no claim "+v.settings.UserClaim, "the ID token names no user: the claim "+
			v.settings.UserClaim+" is missing")
	}
	if verified, ok := claims["email_verified"].(bool); v.settings.UserClaim == "email" && (!ok || !verified) {
		return refuse("the email of the ID token is not verified", "the email of the ID token is not verified")
	}
	return Subject{Name: v.settings.Prefix + name, Groups: v.groups(claims[v.settings.GroupsClaim]), Method: ByOIDC,
		Credential: id.Issuer + " " + id.Subject}, nil
}

// groups reads a list of groups, or one group.
func (v *oidcVerifier) groups(claim any) []string {
	groups := []string{AuthenticatedGroup}
	list, ok := claim.([]any)
	if !ok {
		list = []any{claim}
	}
	for _, one := range list {
		if group, ok := one.(string); ok && strings.TrimSpace(group) != "" {
			groups = append(groups, v.settings.Prefix+group)
		}
	}
	return groups
}

// provider returns the verifier, after discovery.
func (v *oidcVerifier) provider() (*oidc.IDTokenVerifier, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.verifier != nil {
		return v.verifier, nil
	}
	if v.failed != nil && v.now().Before(v.retry) {
		return nil, v.failed
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.Background(), v.client), oidcTimeout)
	defer cancel()
	provider, err := oidc.NewProvider(ctx, v.settings.Issuer)
	if err != nil {
		v.failed, v.retry = err, v.now().Add(oidcRetry)
		return nil, err
	}
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil {
		return nil, err
	}
	v.signIn, v.noSignIn = readSignIn(v.settings, provider)
	v.verifier = oidc.NewVerifier(v.settings.Issuer, newKeySet(document.Keys, v.client, v.now),
		&oidc.Config{ClientID: v.settings.ClientID, SupportedSigningAlgs: oidcAlgorithms, Now: v.now})
	return v.verifier, nil
}
