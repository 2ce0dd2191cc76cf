package access

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxTokenBytes is much more than any token that the server accepts.
const maxTokenBytes = 16 << 10

// authenticate uses the first credential present: the endpoint's own, a bearer token, a client certificate, loopback.
// It never ignores an invalid credential in favour of another or none.
func (g *Guard) authenticate(r *http.Request, proof Proof) (Subject, error) {
	values, given := r.Header["Authorization"]
	if given && len(values) != 1 {
		return Subject{}, &LoginError{Method: ByToken, Reason: fmt.Sprintf("%d Authorization headers", len(values)),
			Hint: "send one Authorization header"}
	}
	if err := elsewhere(r); err != nil {
		return Subject{}, err
	}
	if proof != nil {
		if s, shown := proof(r); shown {
			return s, nil
		}
	}
	shown := r.TLS != nil && len(r.TLS.PeerCertificates) > 0
	switch {
	case given && shown:
		return g.both(r, values[0])
	case given:
		return g.bearer(r, values[0])
	case shown && g.config.ClientCAs != nil:
		return g.certificate(r.TLS.PeerCertificates)
	}
	if r.TLS != nil || !overLoopback(r) {
		return Subject{}, &LoginError{Method: Anonymously, Reason: "no credential",
			Hint: "send a user token (Authorization: Bearer) or a client certificate"}
	}
	if !g.config.LocalAdmin {
		return Subject{}, &LoginError{Method: ByLoopback, Reason: "no credential, and this server does not trust loopback alone", Hint: "send a user token (Authorization: Bearer)"}
	}
	if why := notLocal(r); why != "" {
		return Subject{}, &LoginError{Method: ByLoopback, Reason: "no credential, and this server does not trust loopback alone: " + why,
			Hint: "loopback is not a credential here: " + why + "; send a user token (Authorization: Bearer)"}
	}
	return localAdmin(), nil
}

// both verifies a token and a client certificate. Both must prove the same user, whose groups are those in both.
func (g *Guard) both(r *http.Request, header string) (Subject, error) {
	s, err := g.bearer(r, header)
	if err != nil {
		return Subject{}, err
	}
	if g.config.ClientCAs == nil {
		return Subject{}, &LoginError{Method: ByToken, Claimed: s.Name,
			Reason: "a token beside a client certificate, which identifies nobody on this server",
			Hint:   "the request has a token and a client certificate, and certificates identify nobody here: send the token alone"}
	}
	of, err := g.certificate(r.TLS.PeerCertificates)
	if err != nil {
		return Subject{}, err
	}
	if of.Name != s.Name {
		return Subject{}, &LoginError{Method: ByToken, Claimed: s.Name,
			Reason: fmt.Sprintf("a token of %q beside a client certificate of %q", s.Name, of.Name),
			Hint:   "the token and the client certificate belong to different users: send one of them"}
	}
	s.Groups = slices.DeleteFunc(slices.Clone(s.Groups),
		func(group string) bool { return !slices.Contains(of.Groups, group) })
	return s, nil
}

func (g *Guard) bearer(r *http.Request, header string) (Subject, error) {
	scheme, token, _ := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return Subject{}, &LoginError{Method: ByToken, Reason: "the scheme of Authorization is not Bearer",
			Hint: "send Authorization: Bearer TOKEN"}
	case token == "" || len(token) > maxTokenBytes:
		return Subject{}, &LoginError{Method: ByToken, Reason: fmt.Sprintf("a token of %d bytes", len(token)),
			Hint: "the token is empty or too long: send one that causewayctl user token has printed"}
	}
	if g.config.OIDC != nil && issuerOf(token) == g.config.OIDCIssuer {
		return g.config.OIDC.Verify(r, token)
	}
	if g.config.Issuer == nil {
		return Subject{}, &LoginError{Method: ByToken, Reason: "this server accepts no user tokens",
			Hint: "the token is not valid here"}
	}
	return userOf(g.config.Issuer, token)
}

// issuerOf reads the claim iss of a token without trusting it, only to select the token's verifier.
func issuerOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(raw, &claims) != nil {
		return ""
	}
	return claims.Issuer
}

// certificate reads the user from a client certificate: its common name, and its organizations as groups. The handshake
// has proven that the peer has the key. The certificate is verified with every request, so that it stops working when
// it expires or is revoked, not when the connection ends.
func (g *Guard) certificate(chain []*x509.Certificate) (Subject, error) {
	leaf := chain[0]
	refuse := func(reason, hint string) (Subject, error) {
		return Subject{}, &LoginError{Method: ByCertificate, Reason: reason, Hint: hint, Claimed: leaf.Subject.CommonName}
	}
	intermediates := x509.NewCertPool()
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: g.config.ClientCAs, Intermediates: intermediates, CurrentTime: g.config.Now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return refuse("client certificate: "+err.Error(), "the client certificate is not valid here")
	}
	if issuer := g.config.Issuer; issuer != nil {
		revoked, err := issuer.CertificateRevoked(leaf.SerialNumber)
		if err != nil {
			return refuse("client certificate: cannot read the revocations: "+err.Error(),
				"whether the client certificate is valid is unknown now")
		}
		if revoked {
			return refuse("client certificate: "+leaf.SerialNumber.Text(16)+" was revoked",
				"the client certificate is not valid here")
		}
	}
	if leaf.Subject.CommonName == "" {
		return refuse("the client certificate has no common name",
			"the client certificate names no user: its common name is empty")
	}
	if Reserved(leaf.Subject.CommonName) || slices.ContainsFunc(leaf.Subject.Organization, Reserved) {
		return refuse("the client certificate has a name that begins with "+ReservedPrefix,
			"names that begin with "+ReservedPrefix+" are reserved for the server")
	}
	return Subject{
		Name: leaf.Subject.CommonName, Groups: append(slices.Clone(leaf.Subject.Organization), AuthenticatedGroup),
		Method: ByCertificate, Credential: leaf.SerialNumber.Text(16) + " until " + leaf.NotAfter.UTC().Format(time.RFC3339),
	}, nil
}
