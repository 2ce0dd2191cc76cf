package identity_test

import (
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
	"errors"
	"log/slog"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"
	"go.uber.org/goleak"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var home = resources.Home{Zone: "zone-1", SystemNamespace: resources.DefaultSystemNamespace}

// newKeeper returns a keeper that stores secrets in memory.
func newKeeper(t *testing.T) *secrets.Keeper {
	t.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	return secrets.NewKeeper(store.NewMemory(), box)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func resource(t *testing.T, h resources.Home, key resources.Key, spec string,
	labels map[string]string) *resources.Resource {
	t.Helper()
	s, err := resources.NewSpec(key.Type, []byte(spec))
	must(t, err)
	return h.Labelled(&resources.Resource{Key: key, Spec: s, Labels: labels})
}

func dataplane(t *testing.T, namespace, name string, labels map[string]string) *resources.Resource {
	t.Helper()
	return resource(t, home, resources.Key{Type: resources.TypeDataplane, Mesh: "default", Namespace: namespace,
		Name: name}, `{}`, labels)
}

func TestIDOf(t *testing.T) {
	t.Parallel()
	domain := spiffeid.RequireTrustDomainFromString("default.zone-1.mesh.local")
	for _, c := range []struct {
		name, namespace string
		labels          map[string]string
		want            string // empty if refused
	}{
		{"name", "", nil, "/workload/backend"},
		{"workload", "", map[string]string{resources.LabelWorkload: "shop"}, "/workload/shop"},
		{"account", "payments", map[string]string{resources.LabelServiceAccount: "pay"}, "/ns/payments/sa/pay"},
		{"account beats workload", "payments", map[string]string{resources.LabelServiceAccount: "pay",
			resources.LabelWorkload: "w"}, "/ns/payments/sa/pay"},
		{"namespace alone", "payments", nil, "/workload/backend"},
		{"account alone", "", map[string]string{resources.LabelServiceAccount: "pay"}, "/workload/backend"},
		{"slash", "", map[string]string{resources.LabelWorkload: "a/../b"}, ""},
		{"dots", "", map[string]string{resources.LabelWorkload: ".."}, ""},
		{"comma", "", map[string]string{resources.LabelWorkload: "a,spiffe://x"}, ""},
		{"account slash", "payments", map[string]string{resources.LabelServiceAccount: "a/b"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			id, err := identity.IDOf(dataplane(t, c.namespace, "backend", c.labels), domain)
			if c.want == "" {
				if !errors.Is(err, identity.ErrIdentity) {
					t.Fatalf("got %v, %v", id, err)
				}
				return
			}
			must(t, err)
			if id.Path() != c.want {
				t.Errorf("got %s, want %s", id.Path(), c.want)
			}
		})
	}
}

func TestSVIDVerifies(t *testing.T) {
	t.Parallel()
	now := time.Now().Add(-36 * time.Hour).Truncate(time.Second)
	authorities := identity.NewAuthorities(identity.Config{Keeper: newKeeper(t), Zone: "zone-1",
		Now: func() time.Time { return now }})
	svid, err := authorities.Issue(dataplane(t, "payments", "backend",
		map[string]string{resources.LabelServiceAccount: "pay"}))
	must(t, err)
	authority, err := authorities.For("default")
	must(t, err)
	if got := svid.Leaf.NotAfter.Sub(now); got != identity.Lifetime {
		t.Errorf("lifetime %s", got)
	}
	if got := svid.RenewAt.Sub(now); got != identity.Lifetime/2 {
		t.Errorf("renewed after %s", got)
	}
	if !svid.Leaf.NotBefore.Before(now) {
		t.Errorf("no allowance for a slow clock")
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM())
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := svid.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}})
		must(t, err)
	}
	parsed, err := x509svid.Parse(svid.CertificatePEM, svid.KeyPEM)
	must(t, err)
	if want := "spiffe://default.zone-1.mesh.local/ns/payments/sa/pay"; parsed.ID.String() != want {
		t.Errorf("ID %s, want %s", parsed.ID, want)
	}
	bundle, err := x509bundle.Parse(authority.TrustDomain(), authority.PEM())
	must(t, err)
	id, _, err := x509svid.Verify(parsed.Certificates, bundle, x509svid.WithTime(now))
	must(t, err)
	if id != svid.ID {
		t.Errorf("verified as %s", id)
	}
	if _, _, err := x509svid.Verify(parsed.Certificates, bundle,
		x509svid.WithTime(now.Add(identity.Lifetime+time.Minute))); err == nil {
		t.Error("valid after its end")
	}
	if len(svid.Leaf.URIs) != 1 || len(svid.Leaf.DNSNames)+len(svid.Leaf.IPAddresses)+
		len(svid.Leaf.EmailAddresses) > 0 || svid.Leaf.IsCA {
		t.Errorf("more names than one, or an authority: %+v", svid.Leaf)
	}
}

func request(t *testing.T, key crypto.Signer, uris ...string) []byte {
	t.Helper()
	template := &x509.CertificateRequest{DNSNames: []string{"evil.example"}}
	for _, u := range uris {
		parsed, err := url.Parse(u)
		must(t, err)
		template.URIs = append(template.URIs, parsed)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// oversized is a request with an RSA key of so many bits, which nobody has, and a signature as long.
func oversized(t *testing.T, bits int) []byte {
	t.Helper()
	modulus := new(big.Int).SetBit(big.NewInt(1), bits-1, 1)
	key, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: modulus, E: 65537})
	must(t, err)
	body := struct {
		Version int
		Subject pkix.RDNSequence
		Key     asn1.RawValue
		Rest    []asn1.RawValue `asn1:"tag:0"`
	}{Key: asn1.RawValue{FullBytes: key}}
	tbs, err := asn1.Marshal(body)
	must(t, err)
	der, err := asn1.Marshal(struct {
		TBS       asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{
		asn1.RawValue{FullBytes: tbs}, pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1,
			1, 11}, Parameters: asn1.NullRawValue},
		asn1.BitString{Bytes: make([]byte, bits/8), BitLength: bits},
	})
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// TestKeysAreJudgedBeforeTheyAreUsed: a key that no one is to have is refused as such. To verify a signature by one of
// 190,000 bits, which a request has room for, takes two seconds.
func TestKeysAreJudgedBeforeTheyAreUsed(t *testing.T) {
	t.Parallel()
	authorities := identity.NewAuthorities(identity.Config{Keeper: newKeeper(t), Zone: "zone-1"})
	_, err := authorities.Sign(dataplane(t, "", "backend", nil), oversized(t, 190_000))
	if !errors.Is(err, identity.ErrRequest) || !strings.Contains(err.Error(), "an RSA key of 190000 bits") {
		t.Errorf("%v", err)
	}
}

func TestSign(t *testing.T) {
	t.Parallel()
	authorities := identity.NewAuthorities(identity.Config{Keeper: newKeeper(t), Zone: "zone-1"})
	dp := dataplane(t, "", "backend", nil)
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	must(t, err)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	rsa2048, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	own := "spiffe://default.zone-1.mesh.local/workload/backend"
	good := request(t, p256)
	tampered := func() []byte {
		block, _ := pem.Decode(good)
		block.Bytes[len(block.Bytes)-1] ^= 1
		return pem.EncodeToMemory(block)
	}()
	for _, c := range []struct {
		name string
		csr  []byte
		ok   bool
	}{
		{"plain", good, true},
		{"own ID", request(t, p256, own), true},
		{"rsa", request(t, rsa2048), true},
		{"another's ID", request(t, p256, "spiffe://default.zone-1.mesh.local/workload/frontend"), false},
		{"own and another's ID", request(t, p256, own, "spiffe://default.zone-1.mesh.local/workload/frontend"), false},
		{"p224", request(t, p224), false},
		{"ed25519", request(t, ed), false},
		{"not signed by its key", tampered, false},
		{"no PEM", []byte("hello"), false},
		{"two blocks", append(append([]byte{}, good...), good...), false},
		{"empty", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			svid, err := authorities.Sign(dp, c.csr)
			if !c.ok {
				if !errors.Is(err, identity.ErrRequest) {
					t.Fatalf("got %v, %v", svid, err)
				}
				return
			}
			must(t, err)
			if len(svid.Leaf.URIs) != 1 || svid.Leaf.URIs[0].String() != own || len(svid.Leaf.DNSNames) > 0 {
				t.Errorf("names %v %v", svid.Leaf.URIs, svid.Leaf.DNSNames)
			}
			if svid.KeyPEM != nil {
				t.Error("a key that is not ours")
			}
		})
	}
}
