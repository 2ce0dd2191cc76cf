package tokens

import (
	"context"
	"errors"
	"fmt"

	"github.com/golang-jwt/jwt/v5"
)

// maxIDBytes bounds the size of a remembered id.
const maxIDBytes = 128

// Verify checks a token as of now: its form, its key and signature, its audience and times, and whether it is revoked.
// It returns claims only with a nil error. Errors: ErrMalformed, ErrAlgorithm, ErrUnknownKey, ErrSignature, ErrExpired,
// ErrNotYet, ErrAudience, ErrRevoked; and those of the keeper if the keys cannot be read. No error contains any part of
// the token.
func (i *Issuer) Verify(token string, a Audience) (Claims, error) {
	ctx := context.Background()
	current, err := i.ring.get(ctx)
	if err != nil {
		return Claims{}, err
	}
	p, err := parse(token, current)
	if err != nil {
		return Claims{}, err
	}
	if err := p.check(a, i.cfg.Now()); err != nil {
		return Claims{}, err
	}
	revoked, err := i.revoked.get(ctx)
	if err != nil {
		return Claims{}, err
	}
	if revoked.has(p.ID) {
		return Claims{}, ErrRevoked
	}
	return p.claims(a), nil
}

// parse returns the payload of a token that a key of the ring signed.
func parse(token string, keys *ring) (*payload, error) {
	if len(token) > maxTokenBytes {
		return nil, fmt.Errorf("%w: it has %d bytes, more than %d", ErrMalformed, len(token), maxTokenBytes)
	}
	var p payload
	_, err := jwt.NewParser(jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding()).ParseWithClaims(token, &p,
		keys.verifier)
	var refused *refusal
	switch {
	case err == nil:
		return &p, nil
	case errors.As(err, &refused):
		return nil, refused.reason
	case errors.Is(err, jwt.ErrTokenUnverifiable):
		return nil, ErrAlgorithm // the library does not know the algorithm
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return nil, ErrSignature
	default:
		return nil, ErrMalformed
	}
}

// refusal carries an error of verifier through the library.
type refusal struct{ reason error }

func (r *refusal) Error() string { return r.reason.Error() }

// verifier selects the key. The key determines the algorithm. The header must agree with it but decides nothing, so a
// public key is never treated as a shared secret.
func (r *ring) verifier(t *jwt.Token) (any, error) {
	if _, critical := t.Header["crit"]; critical {
		return nil, &refusal{ErrMalformed} // RFC 7515, section 4.1.11: critical extensions must be understood; none is
	}
	kid, _ := t.Header["kid"].(string)
	key := r.find(kid)
	switch {
	case t.Method.Alg() != jwt.SigningMethodEdDSA.Alg() && t.Method.Alg() != jwt.SigningMethodRS256.Alg():
		return nil, &refusal{ErrAlgorithm}
	case key == nil:
		return nil, &refusal{ErrUnknownKey}
	case t.Method.Alg() != key.method.Alg():
		return nil, &refusal{ErrAlgorithm}
	}
	return key.verify, nil
}
