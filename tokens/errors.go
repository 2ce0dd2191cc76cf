package tokens

import "errors"

// Why a token was refused. A peer is told no more than that it was; logs and the audit log may name these.
var (
	// ErrMalformed: it is not a token as this server issues them.
	ErrMalformed = errors.New("the token is malformed")
	// ErrAlgorithm: its algorithm is not the one of the key that it names, or none that is taken.
	ErrAlgorithm = errors.New("the token's algorithm is not the key's")
	// ErrUnknownKey: the key it names is not, or no longer, one of this server.
	ErrUnknownKey = errors.New("the token's key is not known")
	// ErrSignature: it was altered, or another key signed it.
	ErrSignature = errors.New("the token's signature is wrong")
	// ErrExpired: its time is over.
	ErrExpired = errors.New("the token has expired")
	// ErrNotYet: its time has not come; clocks may differ.
	ErrNotYet = errors.New("the token is not valid yet")
	// ErrAudience: it was issued for something else.
	ErrAudience = errors.New("the token is for another audience")
	// ErrRevoked: its id was revoked.
	ErrRevoked = errors.New("the token was revoked")
	// ErrUsed: it may be used once, and was.
	ErrUsed = errors.New("the token was used already")

	// ErrKey: a key or its id cannot be used, or not in this way.
	ErrKey = errors.New("signing key")
	// ErrClaims: such a token would never be accepted.
	ErrClaims = errors.New("claims of a token")
	// ErrFull: too many ids are remembered; wait for tokens to expire, or retire the key that signed them.
	ErrFull = errors.New("too many ids are remembered")
)
