package resources_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

func TestHosts(t *testing.T) {
	for _, tt := range []struct {
		a, b, narrower string
	}{
		{"*", "a.example", "a.example"}, {"a.example", "*", "a.example"}, {"*", "*", "*"},
		{"*.example", "a.example", "a.example"}, {"*.example", "a.b.example", "a.b.example"},
		{"*.example", "example", ""}, {"*.example", "xexample", ""}, {"*.example", "*.a.example", "*.a.example"},
		{"*.a.example", "*.b.example", ""}, {"a.example", "b.example", ""}, {"a.example", "a.example", "a.example"},
		{"*.a.example", "a.example", ""}, {"*.example", "*", "*.example"},
	} {
		if got, ok := resources.NarrowerHost(tt.a, tt.b); got != tt.narrower || ok != (tt.narrower != "") {
			t.Errorf("%s and %s: %q", tt.a, tt.b, got)
		}
	}
	order := []string{"a.b.example", "z.b.example", "a.example", "*.a.b.example", "*.example", "*"}
	for range 20 {
		got := slices.Clone(order)
		slices.Reverse(got)
		if slices.SortFunc(got, resources.CompareHosts); !slices.Equal(got, order) {
			t.Fatalf("%q", got)
		}
	}
	for host, want := range map[string]bool{"*": true, "a": true, "a.example": true, "*.a.example": true, "*.com": true,
		"A.example": false, "": false, "*a.example": false, "a.*.example": false, "10.0.0.1": false, "a.example.": false,
		strings.Repeat("a.", 127) + "example": false} {
		if got := resources.IsHostPattern(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

// bundle returns a certificate for *.example, signed by its own key, and the key.
func bundle(t *testing.T, public, private any) (certificate, key []byte) {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a"},
		DNSNames: []string{"*.example", "b.example.org"}, NotBefore: time.Unix(1000, 0), NotAfter: time.Unix(2000, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func TestServerCertificates(t *testing.T) {
	of := func(curve elliptic.Curve) (certificate, key []byte) {
		k, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return bundle(t, k.Public(), k)
	}
	certificate, key := of(elliptic.P256())
	other, otherKey := of(elliptic.P256())
	weak, weakKey := of(elliptic.P224())
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edwards, edwardsKey := bundle(t, public, private)
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	short, shortKey := bundle(t, small.Public(), small)
	text := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	encrypted := strings.Replace(string(key), "PRIVATE KEY", "ENCRYPTED PRIVATE KEY", 2)
	for want, given := range map[string][]byte{
		"":                      text(key, []byte("words\n"), certificate, other),
		"no certificate":        key,
		"no private key":        certificate,
		"two private keys":      text(certificate, key, otherKey),
		"the private key of it": text(certificate, otherKey),
		"of a kind":             text(edwards, edwardsKey),
		"P-224":                 text(weak, weakKey),
		"1024 bits":             text(short, shortKey),
		"encrypted":             text(certificate, []byte(encrypted)),
		"at most":               text(certificate, key, make([]byte, resources.MaxCertificateBytes)),
		"has no certificate":    nil,
		"that cannot be read":   text(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), key),
	} {
		got, err := resources.ReadServerCertificate(given)
		switch {
		case want == "" && err != nil:
			t.Error(err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("want %q, got %v", want, err)
		case want != "" && strings.Contains(err.Error(), "-----"):
			t.Errorf("%v quotes the text", err)
		case want == "":
			if string(got.Key) != string(key) || string(got.Chain) != string(text(certificate, other)) {
				t.Errorf("%s%s", got.Chain, got.Key)
			}
			for _, tt := range []struct {
				host string
				at   int64
				want string
			}{
				{"a.example", 1500, ""}, {"*.example", 1500, ""}, {"*", 1500, ""}, {"b.example.org", 1500, ""},
				{"a.b.example", 1500, "is not for"}, {"*.example.org", 1500, "is not for"}, {"example", 1500, "is not for"},
				{"*", 999, "valid from"}, {"*", 2001, "expired"},
			} {
				if problem := got.Problem(tt.host, time.Unix(tt.at, 0)); (problem == "") != (tt.want == "") ||
					!strings.Contains(problem, tt.want) {
					t.Errorf("%s at %d: %q", tt.host, tt.at, problem)
				}
			}
		}
	}
}
