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

	"github.com/causeway-mesh/causeway/credential/provider"
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

// oidcRetry is the wait before a provider that did not answer is asked again.
const oidcRetry = 5 * time.Second

// oidcVerifier verifies ID tokens. The provider is looked for when the first token comes, so that a server starts
// without it.
type oidcVerifier struct {
	settings OIDCSettings
	client   *http.Client
	now      func() time.Time

	mu     sync.Mutex
	found  *foundProvider // guarded by mu; nil until the provider has answered
	asking chan struct{}  // guarded by mu: closed when the request under way is over; nil when there is none
	failed error          // guarded by mu: why the last request found none; nil before the first
	retry  time.Time      // guarded by mu
}

// foundProvider is what a provider's document says.
type foundProvider struct {
	verifier *oidc.IDTokenVerifier
	// signIn is how browsers sign in; noSignIn says why they cannot.
	signIn   *SignIn
	noSignIn error
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
		return nil, errors.New("OIDC: the client ID is missing, which tokens have as their audience: set --api-oidc-client-id")
	}
	s.UserClaim, s.GroupsClaim, s.Prefix = cmp.Or(s.UserClaim, "sub"), cmp.Or(s.GroupsClaim, "groups"),
		cmp.Or(s.Prefix, "oidc:")
	if Reserved(s.Prefix) || strings.HasPrefix(ReservedPrefix, s.Prefix) { // the rest may come from the provider: "mesh-", and the group "system:admin"
		return nil, fmt.Errorf("OIDC prefix %q: names that begin with %s are reserved for the server, and with this prefix the provider's names could begin so: choose another, such as %q", s.Prefix, ReservedPrefix, "oidc:")
	}
	client, err := provider.Client("--api-oidc-ca", s.CAFile, now)
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
	found, err := v.provider(r.Context())
	if err != nil {
		return refuse("the identity provider is unavailable: "+err.Error(),
			"the identity provider is unavailable: try again later")
	}
	id, err := found.verifier.Verify(oidc.ClientContext(r.Context(), v.client), token)
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

// provider returns what the provider's document says. One request at a time asks for it, without the lock. The others
// wait for that one's answer, for as long as ctx lasts, if it is the first; later ones get the last failure at once, so
// that a provider that does not answer holds up one request.
func (v *oidcVerifier) provider(ctx context.Context) (*foundProvider, error) {
	v.mu.Lock()
	found, failed, asking := v.found, v.failed, v.asking
	mine := found == nil && asking == nil && (failed == nil || !v.now().Before(v.retry))
	if mine {
		asking = make(chan struct{})
		v.asking = asking
	}
	v.mu.Unlock()
	switch {
	case found != nil:
		return found, nil
	case mine:
		return v.ask(asking)
	case failed != nil:
		return nil, failed
	}
	select {
	case <-asking:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.found, v.failed
}

// ask asks the provider for its document, and closes done when its answer is known. Whoever it is asked for may leave:
// others wait for the answer.
func (v *oidcVerifier) ask(done chan struct{}) (found *foundProvider, err error) {
	err = errors.New("its document cannot be read") // should discovery panic
	defer func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.found, v.failed, v.retry, v.asking = found, err, v.now().Add(oidcRetry), nil
		close(done)
	}()
	found, err = v.discover()
	return found, err
}

func (v *oidcVerifier) discover() (*foundProvider, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.Background(), v.client), provider.Timeout)
	defer cancel()
	found, err := oidc.NewProvider(ctx, v.settings.Issuer)
	if err != nil {
		return nil, err
	}
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := found.Claims(&document); err != nil {
		return nil, err
	}
	out := &foundProvider{verifier: oidc.NewVerifier(v.settings.Issuer, newKeySet(document.Keys, v.client, v.now),
		&oidc.Config{ClientID: v.settings.ClientID, SupportedSigningAlgs: provider.Algorithms(), Now: v.now})}
	out.signIn, out.noSignIn = readSignIn(v.settings, found)
	return out, nil
}
