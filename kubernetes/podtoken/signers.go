package podtoken

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	// leeway is how far this server's clock may be behind the API server's, for a token that is new.
	leeway = 5 * time.Minute
	// maxIssuers limits the cached issuers.
	maxIssuers = 4
)

// errForeign reports a token that names an unknown key or an unknown issuer. Another look at the keys may find it.
var errForeign = fmt.Errorf("%w: it names a key or an issuer that is not the cluster's", ErrRefused)

// signers holds the keys of a cluster, as one look found them.
type signers struct {
	keys []jose.JSONWebKey
	// issuers are those that the API server has named, newest first. It names only the newest, and accepts tokens of
	// earlier ones while an operator replaces them.
	issuers []string
	read    time.Time
}

// replaced returns what a later look found. It keeps the issuers of s, which may be nil.
func (s *signers) replaced(issuer string, keys []jose.JSONWebKey, read time.Time) *signers {
	next := &signers{keys: keys, issuers: []string{issuer}, read: read}
	if s != nil {
		before := slices.DeleteFunc(slices.Clone(s.issuers), func(old string) bool { return old == issuer })
		next.issuers = append(next.issuers, before[:min(len(before), maxIssuers-1)]...)
	}
	return next
}

// verify returns the expiry of a token that one of the keys signed, for our audience, and that is valid now. It decodes
// the claims after the signature. Errors wrap ErrRefused, and errForeign where another look at the keys may help.
func (s *signers) verify(token *jwt.JSONWebToken, now time.Time) (time.Time, error) {
	header := token.Headers[0]
	i := slices.IndexFunc(s.keys, func(k jose.JSONWebKey) bool { return k.KeyID == header.KeyID })
	if i < 0 {
		return time.Time{}, errForeign
	}
	key := &s.keys[i]
	var claims jwt.Claims
	if key.Algorithm != "" && key.Algorithm != header.Algorithm || token.Claims(key, &claims) != nil {
		return time.Time{}, fmt.Errorf("%w: the key that it names did not sign it, or its claims are malformed", ErrRefused)
	}
	switch expires := claims.Expiry.Time(); {
	case !slices.Contains(s.issuers, claims.Issuer):
		return time.Time{}, errForeign
	case !claims.Audience.Contains(Audience):
		return time.Time{}, fmt.Errorf("%w: it is for another audience", ErrRefused)
	case claims.Expiry == nil:
		return time.Time{}, fmt.Errorf("%w: it does not say when it ends", ErrRefused)
	case !now.Before(expires):
		return time.Time{}, ErrExpired
	case claims.NotBefore != nil && now.Add(leeway).Before(claims.NotBefore.Time()):
		return time.Time{}, ErrNotYet
	default:
		return expires, nil
	}
}
