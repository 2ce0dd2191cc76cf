package enrolment

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/kds"
)

const someID = "01234567-89ab-cdef-0123-456789abcdef"

// TestMembersHaveKeysOfOneKind checks that any other key is refused before its signature is verified, which takes
// seconds for some.
func TestMembersHaveKeysOfOneKind(t *testing.T) {
	t.Parallel()
	good, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []crypto.Signer{good, large} {
		der, err := x509.CreateCertificateRequest(rand.Reader,
			&x509.CertificateRequest{URIs: []*url.URL{ZoneIdentity{"zone-1", someID}.URI()}}, key)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := ParseSigningRequest(der); (err == nil) != (key == crypto.Signer(good)) {
			t.Errorf("%T: %v", key, err)
		}
		der[len(der)-1] ^= 1
		if _, _, err := ParseSigningRequest(der); err == nil ||
			strings.Contains(err.Error(), "want ECDSA P-256") == (key == crypto.Signer(good)) {
			t.Errorf("%T, with a wrong signature: %v", key, err)
		}
	}
}

// FuzzSigningRequest checks that a signing request is accepted only if its own key signed it and it names one zone in
// the one form.
func FuzzSigningRequest(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	for _, uris := range [][]*url.URL{
		{ZoneIdentity{"zone-1", someID}.URI()}, nil, {ZoneIdentity{"zone-1", someID}.URI(), ZoneIdentity{"zone-2", someID}.URI()},
		{{Scheme: "spiffe", Host: "default.zone-1.mesh.local", Path: "/workload/x"}},
		{{Scheme: uriScheme, Host: uriHost, Path: "/a/../b/" + someID}},
	} {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: uris}, key)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(der)
		f.Add(der[:len(der)/2])
	}
	f.Fuzz(func(t *testing.T, der []byte) {
		m, request, err := ParseSigningRequest(der)
		if err != nil {
			if !errors.Is(err, kds.ErrRequest) {
				t.Fatalf("%v is no kds.ErrRequest", err)
			}
			return
		}
		if kds.CheckZoneName(m.Zone) != nil || !idPattern.MatchString(m.ID) || request.CheckSignature() != nil {
			t.Fatalf("taken: %+v", m)
		}
		if back, err := parseZoneURI([]*url.URL{m.URI()}); err != nil || back != m {
			t.Fatalf("%+v came back as %+v, %v", m, back, err)
		}
	})
}
