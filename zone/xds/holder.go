package xds

import (
	"crypto/x509"
	"strings"

	"github.com/spiffe/go-spiffe/v2/svid/x509svid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/tokens"
)

// Holder is a caller that asks about a proxy outside of a stream, with a credential that would open one.
type Holder struct {
	// Name is the SPIFFE ID of a certificate, proven only once Is has agreed; "dataplane-token" for a token. Method is
	// token or certificate. Credential identifies the credential without revealing it: a token's ID, a certificate's
	// serial number.
	Name, Method, Credential string

	pass *pass
}

// HolderOf reads an authorization header, which may be empty, and the certificates of a handshake. shown is false for
// anything but a currently valid dataplane token of this zone or a certificate with a SPIFFE ID.
func (a *Admission) HolderOf(authorization string, chain []*x509.Certificate) (h Holder, shown bool) {
	if token, bearer := strings.CutPrefix(authorization, "Bearer "); bearer {
		claims, err := a.cfg.Tokens.Verify(token, tokens.AudienceDataplane)
		if err != nil {
			return Holder{}, false
		}
		p := &pass{admission: a, method: methodToken, token: token, claims: claims, until: claims.Expires, chain: chain}
		return Holder{Name: "dataplane-token", Method: methodToken, Credential: claims.ID, pass: p}, true
	}
	if authorization != "" || len(chain) == 0 {
		return Holder{}, false
	}
	id, err := x509svid.IDFromCert(chain[0])
	if err != nil {
		return Holder{}, false
	}
	p := &pass{admission: a, method: methodCertificate, chain: chain, until: chain[0].NotAfter}
	return Holder{Name: id.String(), Method: methodCertificate, Credential: chain[0].SerialNumber.Text(16), pass: p}, true
}

// Is reports whether the credential belongs to a Dataplane as it is now.
func (h Holder) Is(key resources.Key) bool {
	return h.pass.fits(key, h.pass.admission.cfg.Store.Snapshot().Get(key))
}
