package identity

import "errors"

var (
	// ErrAuthority reports that a certificate authority cannot be used. It is never replaced automatically, because
	// every zone would have to learn the new one. If the error also wraps secrets.ErrWrongKey, give the server the key
	// that its secrets were sealed with.
	ErrAuthority = errors.New("certificate authority cannot be used")
	// ErrRotation reports that an authority is not in the right state for a request.
	ErrRotation = errors.New("this rotation is not possible")
	// ErrNoAuthority reports that a mesh has no authority with that id.
	ErrNoAuthority = errors.New("no such authority")
	// ErrProvided reports that an authority that an operator provides cannot sign for the zone.
	ErrProvided = errors.New("the provided authority is refused")
	// ErrRequest reports that a certificate signing request was refused.
	ErrRequest = errors.New("certificate signing request refused")
	// ErrUnreadable reports that a kept identity is not an SVID with its key.
	ErrUnreadable = errors.New("the stored identity cannot be read")
	// ErrOtherIdentity reports that a kept SVID has another identity, wider usages or a longer lifetime than a newly
	// issued one.
	ErrOtherIdentity = errors.New("the stored identity is a different one")
	// ErrOtherAuthority reports that the current signing authority did not sign a kept SVID.
	ErrOtherAuthority = errors.New("another authority signed the stored identity")
	// ErrDue reports that a kept SVID is due for renewal or not valid yet.
	ErrDue = errors.New("the stored identity is due for renewal")
	// ErrSpire reports that SPIRE, not the zone, gives a Dataplane its identity.
	ErrSpire  = errors.New("identity comes from the SPIRE agent beside the proxy")
	errNoPath = errors.New("a workload's SPIFFE ID has a path")
	// ErrIdentity reports that a Dataplane's labels do not make a valid SPIFFE ID.
	ErrIdentity = errors.New("not a valid SPIFFE ID")
)
