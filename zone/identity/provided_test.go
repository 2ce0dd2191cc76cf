package identity_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// ca is an authority of the operator.
type ca struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func (c *ca) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.cert.Raw})
}

func (c *ca) keyPEM(t *testing.T) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// newCA returns an authority that another one signed, or that is self-signed if by is nil.
func newCA(t *testing.T, name string, by *ca, change func(*x509.Certificate)) *ca {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return signedCA(t, name, by, key, change)
}

func signedCA(t *testing.T, name string, by *ca, key crypto.Signer, change func(*x509.Certificate)) *ca {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, MaxPathLen: -1,
	}
	if change != nil {
		change(template)
	}
	parent := &ca{template, key}
	if by != nil {
		parent = by
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent.cert, key.Public(), parent.key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return &ca{cert, key}
}

func joined(cas ...*ca) []byte {
	var out []byte
	for _, c := range cas {
		out = append(out, c.pem()...)
	}
	return out
}

// TestWhatIsRefusedOfProvidedAuthorities checks the reason of each refusal, and that nothing of a refused authority is
// stored.
func TestWhatIsRefusedOfProvidedAuthorities(t *testing.T) {
	t.Parallel()
	uri := func(text string) []*url.URL {
		u, err := url.Parse(text)
		must(t, err)
		return []*url.URL{u}
	}
	root := newCA(t, "root", nil, nil)
	good := newCA(t, "zone-1", root, nil)
	other := newCA(t, "other", root, nil)
	short := newCA(t, "short root", nil, func(c *x509.Certificate) { c.MaxPathLen, c.MaxPathLenZero = 0, true })
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	weak, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	must(t, err)
	made := func(change func(*x509.Certificate)) *ca { return newCA(t, "made", root, change) }
	notCA := made(func(c *x509.Certificate) { c.IsCA = false })
	noSign := made(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature })
	expired := made(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	early := made(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) })
	clientsOnly := made(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })
	elsewhere := made(func(c *x509.Certificate) { c.PermittedURIDomains = []string{"default.zone-2.mesh.local"} })
	here := made(func(c *x509.Certificate) { c.PermittedURIDomains = []string{"default.zone-1.mesh.local"} })
	foreign := made(func(c *x509.Certificate) { c.URIs = uri("spiffe://default.zone-2.mesh.local") })
	below := newCA(t, "below", short, nil)
	edCA, weakCA := signedCA(t, "ed", root, ed, nil), signedCA(t, "weak", root, weak, nil)
	key := func(c *ca) []byte { return c.keyPEM(t) }
	for _, c := range []struct {
		name              string
		certificates, key []byte
		selfSigned        bool
		want              string // empty if accepted
	}{
		{"an intermediate and its root", joined(good, root), key(good), false, ""},
		{"one with name constraints for the zone", joined(here, root), key(here), false, ""},
		{"a root that is allowed", joined(root), key(root), true, ""},
		{"a root", joined(root), key(root), false, "is a root"},
		{"another's key", joined(good, root), key(other), false, "the key is not that of"},
		{"no CA", joined(notCA, root), key(notCA), false, "is not one of an authority"},
		{"may not sign", joined(noSign, root), key(noSign), false, "may not sign others"},
		{"expired", joined(expired, root), key(expired), false, "expired on"},
		{"not valid yet", joined(early, root), key(early), false, "is not valid before"},
		{"only for clients", joined(clientsOnly, root), key(clientsOnly), false, "leaves out clients or servers"},
		{"name constraints for another zone", joined(elsewhere, root), key(elsewhere), false, "not verified by the root"},
		{"another zone's name", joined(foreign, root), key(foreign), false, "not for spiffe://default.zone-1.mesh.local"},
		{"path length", joined(below, short), key(below), false, "path length"},
		{"without its root", joined(good), key(good), false, "add the certificates up to the root"},
		{"another root", joined(good, short), key(good), false, "not verified by the root"},
		{"a key that Envoy does not verify", joined(edCA, root), key(edCA), false, "Envoy does not verify"},
		{"a weak key", joined(weakCA, root), key(weakCA), false, "want P-256 or P-384"},
		{"no certificates", nil, key(good), false, "certificates: got 0"},
		{"a key among the certificates", append(joined(good, root), key(good)...), key(good), false, "not a PEM certificate"},
		{"no key", joined(good, root), nil, false, "want one PEM block"},
		{"two keys", joined(good, root), append(key(good), key(other)...), false, "want one PEM block"},
		{"an encrypted key", joined(good, root),
			pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{1}}), false, "is encrypted"},
		{"not a key", joined(good, root), []byte("-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"),
			false, "no private key that can be read"},
		{"too many", joined(good, root, root, root, root, root, root), key(good), false, "certificates: got 7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := identity.NewAuthorities(identity.Config{Keeper: newKeeper(t), Zone: "zone-1"})
			id, err := a.Import(t.Context(), "default", &identity.Provision{Certificates: c.certificates, Key: c.key,
				AllowSelfSigned: c.selfSigned})
			if c.want == "" {
				must(t, err)
				must(t, a.Promote(t.Context(), "default", id))
				return
			}
			if !errors.Is(err, identity.ErrProvided) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), "c2VjcmV0") || states(t, a) != "signing " {
				t.Errorf("kept, or told: %v; %s", err, states(t, a))
			}
		})
	}
}

// TestProvidedAuthoritySigns checks that the root alone verifies certificates that it signs, that it survives a
// restart, and that importing it again changes nothing.
func TestProvidedAuthoritySigns(t *testing.T) {
	t.Parallel()
	root := newCA(t, "root", nil, nil)
	middle := newCA(t, "middle", root, nil)
	given := newCA(t, "zone-1", middle, nil)
	keeper := newKeeper(t)
	provision := &identity.Provision{Certificates: joined(given, middle, root), Key: given.keyPEM(t)}
	a := identity.NewAuthorities(identity.Config{Keeper: keeper, Zone: "zone-1"})
	id, err := a.Import(t.Context(), "default", provision)
	must(t, err)
	again, err := a.Import(t.Context(), "default", provision)
	if must(t, err); again != id || states(t, a) != "signing next " {
		t.Errorf("again it is %s, %s", again, states(t, a))
	}
	must(t, a.Promote(t.Context(), "default", id))
	a = identity.NewAuthorities(identity.Config{Keeper: keeper, Zone: "zone-1"})
	svid, err := a.Issue(dataplane(t, "", "x", nil))
	must(t, err)
	parsed, err := x509svid.Parse(svid.CertificatePEM, svid.KeyPEM)
	must(t, err)
	if len(parsed.Certificates) != 3 || svid.Authority != id {
		t.Errorf("%d certificates, by %s", len(parsed.Certificates), svid.Authority)
	}
	bundle := x509bundle.FromX509Authorities(svid.ID.TrustDomain(), []*x509.Certificate{root.cert})
	if _, _, err := x509svid.Verify(parsed.Certificates, bundle); err != nil {
		t.Error(err)
	}
	signing, err := a.For("default")
	must(t, err)
	if string(signing.PEM()) != string(root.pem()) || !signing.Provided() {
		t.Error("what is published is not the root")
	}
}

// TestFilesOfAMeshIdentity checks that a zone uses the authority in the files that a MeshIdentity names, and the next
// one when they change. Faulty files are reported, and change nothing.
func TestFilesOfAMeshIdentity(t *testing.T) {
	t.Parallel()
	memory := store.NewMemory()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	a := identity.NewAuthorities(identity.Config{Keeper: secrets.NewKeeper(memory, box), Store: memory, Zone: "zone-1"})
	p := &identity.Publisher{Store: memory, Home: home, Authorities: a, Log: slog.New(slog.DiscardHandler)}
	dir := t.TempDir()
	chain, key := filepath.Join(dir, "chain.pem"), filepath.Join(dir, "key.pem")
	spec := `{"selector":{"dataplane":{}},"provider":{"type":"Bundled","bundled":{"ca":{"certificate":{"type":"File","file":{"path":"` + chain + `"}},"privateKey":{"type":"File","file":{"path":"` + key + `"}}}}}}`
	for _, r := range []*resources.Resource{
		resource(t, resources.Home{}, resources.Key{Type: resources.TypeMesh, Name: "default"}, `{}`, nil),
		meshIdentity(t, home, "files", spec),
	} {
		_, err := memory.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: r}}})
		must(t, err)
	}
	problem := func(want string) {
		t.Helper()
		must(t, p.Ensure(t.Context(), "default"))
		if got := p.Problem("default"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("problem %q, want %q", got, want)
		}
	}
	problem("no such file")
	root := newCA(t, "root", nil, nil)
	for i, name := range []string{"first", "second"} {
		given := newCA(t, name, root, nil)
		must(t, os.WriteFile(chain, joined(given, root), 0o600))
		must(t, os.WriteFile(key, given.keyPEM(t), 0o600))
		must(t, os.Chmod(key, 0o604))
		problem("can be read by others")
		must(t, os.Chmod(key, 0o600))
		problem("")
		all, err := a.All("default")
		must(t, err)
		next := all[len(all)-1]
		if next.State() != identity.Next || !next.Certificate().Equal(given.cert) || len(all) != i+2 {
			t.Fatalf("%s is %s of %d", next.ID(), next.State(), len(all))
		}
		must(t, a.Promote(t.Context(), "default", next.ID()))
	}
}
