package enrolment

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/causeway-mesh/causeway/kds"
)

// A zone's certificate names the zone in one URI: causeway://zone/<name>/<id>. It is not a SPIFFE ID, so that no proxy
// mistakes it for one.
const (
	uriScheme = "causeway"
	uriHost   = "zone"
)

var idPattern = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// ZoneIdentity identifies the zone of a certificate.
type ZoneIdentity struct {
	// Zone is the name. ID is the UUID that the zone keeps for life.
	Zone, ID string
}

// URI returns the identity as in certificates.
func (m ZoneIdentity) URI() *url.URL {
	return &url.URL{Scheme: uriScheme, Host: uriHost, Path: "/" + m.Zone + "/" + m.ID}
}

// parseZoneURI parses the one URI of a certificate or a signing request. It accepts only the form that URI writes.
func parseZoneURI(uris []*url.URL) (ZoneIdentity, error) {
	if len(uris) != 1 {
		return ZoneIdentity{}, fmt.Errorf("%w: it has %d URIs: want one, causeway://zone/NAME/ID", kds.ErrRequest, len(uris))
	}
	zone, id, found := strings.Cut(strings.TrimPrefix(uris[0].Path, "/"), "/")
	m := ZoneIdentity{Zone: zone, ID: id}
	if !found || kds.CheckZoneName(zone) != nil || !idPattern.MatchString(id) || uris[0].String() != m.URI().String() {
		return ZoneIdentity{}, fmt.Errorf("%w: its URI: want causeway://zone/NAME/ID", kds.ErrRequest)
	}
	return m, nil
}

// ParseSigningRequest parses a zone's signing request, DER of at most maxMembershipMessage bytes, and verifies that its
// author holds the key, which must be ECDSA P-256. It ignores all other content of the request.
func ParseSigningRequest(der []byte) (ZoneIdentity, *x509.CertificateRequest, error) {
	if len(der) > maxMembershipMessage {
		return ZoneIdentity{}, nil, fmt.Errorf("%w: the signing request has %d bytes, want at most %d", kds.ErrRequest,
			len(der), maxMembershipMessage)
	}
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return ZoneIdentity{}, nil, fmt.Errorf("%w: the signing request: want PKCS #10 in DER", kds.ErrRequest)
	}
	if key, ok := request.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() { // others may take seconds to use
		return ZoneIdentity{}, nil, fmt.Errorf("%w: the signing request's key: want ECDSA P-256", kds.ErrRequest)
	}
	if err := request.CheckSignature(); err != nil {
		return ZoneIdentity{}, nil, fmt.Errorf("%w: the signing request: want a signature by its own key", kds.ErrRequest)
	}
	m, err := parseZoneURI(request.URIs)
	return m, request, err
}
