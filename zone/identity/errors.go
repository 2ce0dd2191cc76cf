package identity

import "errors"

var (
	// ErrAuthority: a certificate authority cannot be used. It is never replaced by itself: every zone would have to learn a new
	// one. With secrets.ErrWrongKey, give the server the key that its secrets were sealed with.
	ErrAuthority = errors.New("certificate authority cannot be used")
	// ErrRotation: an authority is not in the state for what is asked.
	ErrRotation = errors.New("authorities cannot be rotated so")
	// ErrNoAuthority: a mesh has no authority of that id.
	ErrNoAuthority = errors.New("no such authority")
	// ErrRequest: a certificate signing request was refused.
	ErrRequest = errors.New("certificate signing request refused")
	// ErrIdentity: a Dataplane's labels do not make a valid SPIFFE ID.
	ErrIdentity = errors.New("no valid SPIFFE ID")
)
