package resources_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// authority returns a self-signed certificate.
func authority(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "root", Organization: []string{"größer"}},
		NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedURIDomains: []string{"a.example"}, SubjectKeyId: []byte("1234"),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// element returns the DER of an element.
func element(tag byte, content []byte) []byte {
	if len(content) < 128 {
		return append([]byte{tag, byte(len(content))}, content...)
	}
	return append([]byte{tag, 0x82, byte(len(content) >> 8), byte(len(content))}, content...)
}

// children returns the elements within one.
func children(t *testing.T, of []byte) (out [][]byte) {
	t.Helper()
	var outer asn1.RawValue
	if _, err := asn1.Unmarshal(of, &outer); err != nil {
		t.Fatal(err)
	}
	for rest := outer.Bytes; len(rest) > 0; {
		var inner asn1.RawValue
		var err error
		if rest, err = asn1.Unmarshal(rest, &inner); err != nil {
			t.Fatal(err)
		}
		out = append(out, inner.FullBytes)
	}
	return out
}

// TestCertificatesThatOnlyGoReads checks that what Go reads and Envoy does not is refused: Envoy would reject all
// authorities because of it. Each row changes the form of a good certificate.
func TestCertificatesThatOnlyGoReads(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := authority(t, key)
	name, common := []byte("größer"), element(0x13, []byte("root"))
	replaced := func(old, with []byte) []byte {
		if len(old) != len(with) || !bytes.Contains(good, old) {
			t.Fatalf("%x is not in the certificate, or not as long as %x", old, with)
		}
		return bytes.ReplaceAll(good, old, with)
	}
	parts := children(t, good)
	for what, der := range map[string][]byte{
		"more after the signature": element(0x30, append(bytes.Join(parts, nil), 0x05, 0x00)),
		"more in the algorithm": element(0x30, bytes.Join([][]byte{parts[0],
			element(0x30, append(bytes.Join(children(t, parts[1]), nil), 0x05, 0x00, 0x05, 0x00)), parts[2]}, nil)),
		"a text of a name that ends earlier": replaced(common, []byte{0x13, 0x02, 'r', 'o', 0x05, 0x00}),
		"a text that is no UTF-8":            replaced(name, []byte("gr\xff\xfeß\xffr")[:len(name)]),
	} {
		if _, err := resources.ParseCertificate(der); err == nil {
			t.Errorf("%s: it is taken", what)
		}
	}
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []crypto.Signer{key, large, edwards} {
		if _, err := resources.ParseCertificate(authority(t, key)); err != nil {
			t.Errorf("%T: %v", key, err)
		}
	}
}

// TestTrustOfAZoneIsSmall checks that a zone may have only a few authorities for each trust domain, because every proxy
// of the mesh gets them. The mesh operator's may be many.
func TestTrustOfAZoneIsSmall(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	one := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority(t, key)}))
	trust := func(zone string, authorities int) *resources.Resource {
		spec, err := resources.NewSpecOf(resources.TypeMeshTrust,
			&resources.MeshTrust{TrustDomain: "default.zone-2.mesh.local", CABundles: []resources.CABundle{
				{Type: resources.CABundlePEM, PEM: &resources.PEMRef{Value: strings.Repeat(one, authorities)}},
			}})
		if err != nil {
			t.Fatal(err)
		}
		return resources.Home{Zone: zone}.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeMeshTrust,
			Mesh: "default", Name: "t"}, Spec: spec})
	}
	for _, row := range []struct {
		zone        string
		authorities int
		taken       bool
	}{{"zone-2", 8, true}, {"zone-2", 100, false}, {"", 100, true}} {
		if err := resources.ValidatePeer(trust(row.zone, row.authorities), ""); (err == nil) != row.taken {
			t.Errorf("%d authorities of %q: %v", row.authorities, row.zone, err)
		}
	}
}
