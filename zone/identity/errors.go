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
	// ErrUnreadable: what was kept is no SVID with its key.
	ErrUnreadable = errors.New("the kept identity cannot be read")
	// ErrOtherIdentity: a kept SVID is for somebody else, or good for more or longer, than one that would be issued now.
	ErrOtherIdentity = errors.New("the kept identity is another one")
	// ErrOtherAuthority: a kept SVID was not signed by the authority that signs now.
	ErrOtherAuthority = errors.New("another authority has signed the kept identity")
	// ErrDue: a kept SVID is to be renewed, or is not good yet.
	ErrDue = errors.New("the kept identity is due for renewal")
	// ErrSpire: the identity of a Dataplane is given by SPIRE, not by the zone.
	ErrSpire  = errors.New("identity comes from the SPIRE agent beside the proxy")
	errNoPath = errors.New("a workload's SPIFFE ID has a path")
	// ErrIdentity: a Dataplane's labels do not make a valid SPIFFE ID.
	ErrIdentity = errors.New("no valid SPIFFE ID")
)
