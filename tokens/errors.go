package tokens

import "errors"

// These errors are the reasons for refusing a token. A peer learns only that it was refused, unless OfTime holds; logs and
// the audit log may name the reason.
var (
	// ErrMalformed reports that the token does not have the form that this server issues.
	ErrMalformed = errors.New("the token is malformed")
	// ErrAlgorithm reports that the token's algorithm is not that of the key that it names, or is not accepted at all.
	ErrAlgorithm = errors.New("the token's algorithm is not the key's")
	// ErrUnknownKey reports that this server does not have, or no longer has, the key that the token names.
	ErrUnknownKey = errors.New("unknown token key")
	// ErrSignature reports that the token was altered or signed with another key.
	ErrSignature = errors.New("the token's signature is wrong")
	// ErrExpired reports that the token has expired.
	ErrExpired = errors.New("the token has expired")
	// ErrNotYet reports that the token is not valid yet. Clocks may differ.
	ErrNotYet = errors.New("the token is not valid yet")
	// ErrAudience reports that the token was issued for another audience.
	ErrAudience = errors.New("the token is for another audience")
	// ErrRevoked reports that the token's id was revoked.
	ErrRevoked = errors.New("the token was revoked")
	// ErrUsed reports that a token for a single use was used before.
	ErrUsed = errors.New("the token was used already")

	// ErrKey reports that a key or its id cannot be used, or not in this way.
	ErrKey = errors.New("signing key")
	// ErrNoKey reports that there is no key with an ID.
	ErrNoKey = errors.New("no such signing key")
	// ErrClaims reports that a token with these claims would never be accepted.
	ErrClaims = errors.New("claims of a token")
	// ErrFull reports that too many IDs are remembered. Wait for tokens to expire, or retire the key that signed them.
	ErrFull = errors.New("too many IDs are stored")
)

// OfTime reports whether an error of Verify is ErrExpired or ErrNotYet. These come after the signature and the audience
// were verified, so whoever showed the token was given it: the reason, and what this server's clock says, may be told.
func OfTime(err error) bool { return errors.Is(err, ErrExpired) || errors.Is(err, ErrNotYet) }
