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
	// ErrProvided: an authority that an operator gives cannot sign for the zone.
	ErrProvided = errors.New("the provided authority is refused")
	// ErrRequest: a certificate signing request was refused.
	ErrRequest = errors.New("certificate signing request refused")
	// ErrSpire: the identity of a Dataplane is given by SPIRE, not by the zone.
	ErrSpire  = errors.New("identity comes from the SPIRE agent beside the proxy")
	errNoPath = errors.New("a workload's SPIFFE ID has a path")
	// ErrIdentity: a Dataplane's labels do not make a valid SPIFFE ID.
	ErrIdentity = errors.New("no valid SPIFFE ID")
)
