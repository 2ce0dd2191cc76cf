package session

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// tokens is the answer of a token endpoint.
type tokens struct {
	ID      string `json:"id_token"`
	Refresh string `json:"refresh_token"`
}

// redeem trades a grant for tokens, and verifies the ID token as the server will: signature, issuer, audience and end.
// A nonce, if there is one, must be in it.
func (p *Provider) redeem(ctx context.Context, grant url.Values, nonce string) (*Session, error) {
	var given tokens
	if err := p.post(ctx, p.document.Token, grant, &given); err != nil {
		return nil, err
	}
	switch {
	case given.ID == "":
		return nil, fmt.Errorf("%s gives no ID token: let the client %s have the scope openid", p.settings.Issuer, p.settings.ClientID)
	case len(given.ID) > maxToken || len(given.Refresh) > maxToken:
		return nil, fmt.Errorf("%s gives a token of more than %d bytes: have it put fewer groups into it", p.settings.Issuer, maxToken)
	}
	id, err := p.verifier.Verify(ctx, given.ID)
	if err != nil {
		return nil, about(p.settings.Issuer, fmt.Errorf("its ID token is not valid: %w", err))
	}
	if nonce != "" && id.Nonce != nonce {
		return nil, fmt.Errorf("%s gives an ID token of another sign-in: its nonce differs", p.settings.Issuer)
	}
	issued := id.IssuedAt
	if now := time.Now(); issued.After(now) || issued.IsZero() {
		issued = now
	}
	return &Session{Issuer: p.settings.Issuer, ClientID: p.settings.ClientID, ProviderCA: p.settings.CAFile,
		Subject: id.Subject, IDToken: given.ID, Issued: issued, Ends: id.Expiry, RefreshToken: given.Refresh}, nil
}

// errAnother reports a provider that renews a session with the token of another person.
var errAnother = errors.New("the identity provider renews the session with another person's token")

// renew trades the session's refresh token for the next session of the same person.
func (p *Provider) renew(ctx context.Context, s *Session) (*Session, error) {
	next, err := p.redeem(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {s.RefreshToken}}, "")
	if err != nil {
		return nil, err
	}
	if next.Subject != s.Subject {
		return nil, errAnother
	}
	if next.RefreshToken == "" { // the old one stays: RFC 6749, section 6
		next.RefreshToken = s.RefreshToken
	}
	next.Server = s.Server
	return next, nil
}

// Revoke tells the provider that the session's refresh token is no longer used. It reports whether the provider has a
// place for that. Source: RFC 7009.
func (p *Provider) Revoke(ctx context.Context, s *Session) (bool, error) {
	if p.document.Revocation == "" {
		return false, nil
	}
	return true, p.post(ctx, p.document.Revocation,
		url.Values{"token": {s.RefreshToken}, "token_type_hint": {"refresh_token"}}, nil)
}
