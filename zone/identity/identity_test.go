package identity_test

import (
	"context"
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
	"os"
	"path/filepath"
	"strings"
	"sync"
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

func TestAuthorityIsKept(t *testing.T) {
	t.Parallel()
	keeper := newKeeper(t)
	first, err := identity.NewAuthorities(identity.Config{Keeper: keeper, Zone: "zone-1"}).For("default")
	must(t, err)
	second, err := identity.NewAuthorities(identity.Config{Keeper: keeper, Zone: "zone-1"}).For("default")
	must(t, err)
	if !first.Certificate().Equal(second.Certificate()) {
		t.Error("made anew")
	}
}

// TestServersThatStartAtOnceHaveOneAuthority checks this for servers that share a store.
func TestServersThatStartAtOnceHaveOneAuthority(t *testing.T) {
	t.Parallel()
	keeper := newKeeper(t)
	found := make([]*identity.Authority, 8)
	var wg sync.WaitGroup
	for i := range found {
		wg.Go(func() {
			var err error
			if found[i], err = identity.NewAuthorities(identity.Config{Keeper: keeper,
				Zone: "zone-1"}).For("default"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, a := range found {
		if a != nil && !a.Certificate().Equal(found[0].Certificate()) {
			t.Error("they have different ones")
		}
	}
}

// inFiles writes an authority unencrypted, as earlier versions did, and returns its certificate.
func inFiles(t *testing.T, dir, mesh string) *x509.Certificate {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(dir, mesh), 0o700))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	id, err := url.Parse("spiffe://" + mesh + ".zone-1.mesh.local")
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), URIs: []*url.URL{id}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, mesh, "ca.crt"),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, mesh, "ca.key"),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	return certificate
}

// TestFilesAreTakenOver checks that the authority does not change, and that its key is no longer stored unencrypted.
func TestFilesAreTakenOver(t *testing.T) {
	t.Parallel()
	dir, keeper := t.TempDir(), newKeeper(t)
	want := inFiles(t, dir, "default")
	for range 2 {
		got, err := identity.NewAuthorities(identity.Config{Keeper: keeper, Dir: dir, Zone: "zone-1"}).For("default")
		must(t, err)
		if !got.Certificate().Equal(want) {
			t.Error("it is another one")
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("left behind: %v, %v", entries, err)
		}
	}
}

// TestFilesOfAnInterruptedTakeoverGo checks that a server removes the files that another was about to remove when it was
// killed, with the key or without it, and no others.
func TestFilesOfAnInterruptedTakeoverGo(t *testing.T) {
	t.Parallel()
	dir, keeper := t.TempDir(), newKeeper(t)
	inFiles(t, dir, "default")
	aside := filepath.Join(t.TempDir(), "default")
	must(t, os.CopyFS(aside, os.DirFS(filepath.Join(dir, "default"))))
	start := func() []os.DirEntry {
		t.Helper()
		_, err := identity.NewAuthorities(identity.Config{Keeper: keeper, Dir: dir, Zone: "zone-1"}).For("default")
		must(t, err)
		left, err := os.ReadDir(dir)
		must(t, err)
		return left
	}
	start()
	for _, key := range []bool{true, false} {
		must(t, os.CopyFS(filepath.Join(dir, "default"), os.DirFS(aside)))
		if !key {
			must(t, os.Remove(filepath.Join(dir, "default", "ca.key")))
		}
		if left := start(); len(left) > 0 {
			t.Errorf("with the key %t: left behind: %v", key, left)
		}
	}
	inFiles(t, dir, "default")
	if left := start(); len(left) != 1 {
		t.Errorf("it removed another authority: %v", left)
	}
}

func TestDamagedFilesAreRefused(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, dir string){
		"no key":         func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "default/ca.key"))) },
		"no certificate": func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "default/ca.crt"))) },
		"empty key": func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "default/ca.key"), nil, 0o600))
		},
		"cut certificate": func(t *testing.T, dir string) {
			must(t, os.Truncate(filepath.Join(dir, "default/ca.crt"), 100))
		},
		"readable key": func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, "default/ca.key"), 0o644)) },
		"another mesh's key": func(t *testing.T, dir string) {
			inFiles(t, dir, "other")
			key, err := os.ReadFile(filepath.Join(dir, "other/ca.key"))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, "default/ca.key"), key, 0o600))
		},
		"another mesh's files": func(t *testing.T, dir string) {
			inFiles(t, dir, "other")
			must(t, os.RemoveAll(filepath.Join(dir, "default")))
			must(t, os.Rename(filepath.Join(dir, "other"), filepath.Join(dir, "default")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, keeper := t.TempDir(), newKeeper(t)
			inFiles(t, dir, "default")
			damage(t, dir)
			before := contents(t, dir)
			_, err := identity.NewAuthorities(identity.Config{Keeper: keeper, Dir: dir, Zone: "zone-1"}).For("default")
			if !errors.Is(err, identity.ErrAuthority) {
				t.Fatalf("got %v", err)
			}
			if after := contents(t, dir); after != before || len(keeper.Names()) > 0 {
				t.Errorf("something changed: %s, then %s, and %v", before, after, keeper.Names())
			}
		})
	}
}

// TestAnotherKeyForSecrets checks that nothing is created anew, and that the error names the key to provide.
func TestAnotherKeyForSecrets(t *testing.T) {
	t.Parallel()
	memory := store.NewMemory()
	open := func() *secrets.Keeper {
		box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
		must(t, err)
		return secrets.NewKeeper(memory, box)
	}
	_, err := identity.NewAuthorities(identity.Config{Keeper: open(), Zone: "zone-1"}).For("default")
	must(t, err)
	revision := memory.Snapshot().Revision()
	_, err = identity.NewAuthorities(identity.Config{Keeper: open(), Zone: "zone-1"}).For("default")
	if !errors.Is(err, identity.ErrAuthority) || !errors.Is(err, secrets.ErrWrongKey) ||
		memory.Snapshot().Revision() != revision {
		t.Errorf("got %v", err)
	}
}

func contents(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	must(t, os.CopyFS(filepath.Join(t.TempDir(), "copy"), os.DirFS(dir)))
	for _, file := range []string{"default/ca.crt", "default/ca.key"} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		all.WriteString(file + ":" + string(b))
		if err != nil {
			all.WriteString(err.Error())
		}
	}
	return all.String()
}

func TestMeshNameStaysInDirectory(t *testing.T) {
	t.Parallel()
	authorities := identity.NewAuthorities(identity.Config{Keeper: newKeeper(t), Zone: "zone-1"})
	for _, mesh := range []string{"", ".", "..", "../x", "a/b", "/etc", "A", strings.Repeat("a", 64)} {
		if _, err := authorities.For(mesh); !errors.Is(err, identity.ErrAuthority) {
			t.Errorf("mesh %q: %v", mesh, err)
		}
	}
}

func trust(t *testing.T, h resources.Home, name, domain string, pems ...[]byte) *resources.Resource {
	t.Helper()
	spec := &resources.MeshTrust{TrustDomain: domain}
	for _, p := range pems {
		spec.CABundles = append(spec.CABundles,
			resources.CABundle{Type: resources.CABundlePEM, PEM: &resources.PEMRef{Value: string(p)}})
	}
	s, err := resources.NewSpecOf(resources.TypeMeshTrust, spec)
	must(t, err)
	return h.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeMeshTrust, Mesh: "default",
		Name: name}, Spec: s})
}

func TestBundlesOf(t *testing.T) {
	t.Parallel()
	ours := newKeeper(t)
	pemOf := func(zone string) []byte {
		keeper := ours
		if zone != "zone-1" {
			keeper = newKeeper(t)
		}
		a, err := identity.NewAuthorities(identity.Config{Keeper: keeper, Zone: zone}).For("default")
		must(t, err)
		return a.PEM()
	}
	one, two := pemOf("zone-1"), pemOf("zone-2")
	zone2, global := resources.Home{Zone: "zone-2"}, resources.Home{}
	leafSVID, err := identity.NewAuthorities(identity.Config{Keeper: ours, Zone: "zone-1"}).Issue(dataplane(t,
		"", "x", nil))
	must(t, err)
	s := store.NewMemory()
	batch := store.Batch{}
	misplaced := trust(t, home, "in-a-namespace", "mine.zone-1.mesh.local", two)
	misplaced.Namespace = "shop"
	misplaced = home.Labelled(misplaced)
	for _, r := range []*resources.Resource{
		trust(t, home, "identity-zone-1", "default.zone-1.mesh.local", one),
		trust(t, zone2, "identity-zone-2", "default.zone-2.mesh.local", two),
		trust(t, zone2, "steals", "default.zone-1.mesh.local", two),
		trust(t, zone2, "steals-suffix", "default.azone-2.mesh.local", two),
		trust(t, zone2, "steals-all", "mesh.local", two),
		trust(t, zone2, "other-mesh", "other.zone-2.mesh.local", two),
		trust(t, global, "company", "company.example", two),
		trust(t, global, "adds", "default.zone-1.mesh.local", one, two),
		trust(t, global, "leaf", "leaf.example", leafSVID.CertificatePEM),
		trust(t, global, "garbage", "garbage.example", []byte("no pem")),
		trust(t, global, "empty", "empty.example"),
		misplaced,
	} {
		batch.Ops = append(batch.Ops, store.Op{Put: r})
	}
	_, err = s.Apply(context.Background(), batch)
	must(t, err)
	bundles := identity.BundlesOf(s.Snapshot(), "default", home)
	got := map[string]int{}
	for _, d := range bundles.Domains() {
		got[d.Name()] = len(bundles.Certificates(d))
	}
	want := map[string]int{"default.zone-1.mesh.local": 2, "default.zone-2.mesh.local": 1, "other.zone-2.mesh.local": 1,
		"company.example": 1}
	if len(got) != len(want) {
		t.Errorf("domains %v, want %v", got, want)
	}
	for d, n := range want {
		if got[d] != n {
			t.Errorf("%s: %d certificates, want %d", d, got[d], n)
		}
	}
	refused := map[string]bool{}
	for _, r := range bundles.Refused {
		refused[r.Trust.Name] = true
	}
	for _, name := range []string{"steals", "steals-suffix", "steals-all", "leaf", "garbage", "empty", "in-a-namespace"} {
		if !refused[name] {
			t.Errorf("%s was believed", name)
		}
	}
	if len(refused) != 7 {
		t.Errorf("refused %v", refused)
	}
}

func TestPublisher(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	put := func(r *resources.Resource) {
		t.Helper()
		_, err := s.Apply(ctx, store.Batch{Ops: []store.Op{{Put: r}}})
		must(t, err)
	}
	mesh := func(name string) *resources.Resource {
		return resource(t, resources.Home{}, resources.Key{Type: resources.TypeMesh, Name: name}, `{}`, nil)
	}
	put(mesh("default"))
	p := &identity.Publisher{
		Store: s, Home: home, Log: slog.New(slog.DiscardHandler),
		Authorities: identity.NewAuthorities(identity.Config{Keeper: newKeeper(t), Zone: "zone-1"}),
	}
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	key := resources.Key{Type: resources.TypeMeshTrust, Mesh: "default", Name: "identity-zone-1"}
	eventually := func(what string, condition func(store.Snapshot) bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; {
			_, next := s.Changed()
			if condition(s.Snapshot()) {
				return
			}
			select {
			case <-next:
			case <-time.After(time.Until(end)):
				t.Fatal("not in time: " + what)
			}
		}
	}
	eventually("published", func(s store.Snapshot) bool { return s.Get(key) != nil })
	first := s.Snapshot().Get(key)
	if spec, err := resources.SpecAs[resources.MeshTrust](first); err != nil ||
		spec.TrustDomain != "default.zone-1.mesh.local" {
		t.Errorf("spec %+v, %v", spec, err)
	}
	revision := s.Snapshot().Revision()
	must(t, p.Ensure(ctx, "default"))
	if got := s.Snapshot().Revision(); got != revision {
		t.Errorf("wrote although nothing differed: revision %d, then %d", revision, got)
	}
	_, err := s.Apply(ctx, store.Batch{Ops: []store.Op{{Delete: key}}})
	must(t, err)
	eventually("put back", func(s store.Snapshot) bool { r := s.Get(key); return r != nil && r.SameContent(first) })
	put(trust(t, home, "identity-zone-1", "default.zone-1.mesh.local", []byte("altered")))
	eventually("altered, put back", func(s store.Snapshot) bool { r := s.Get(key); return r != nil && r.SameContent(first) })
	put(mesh("second"))
	eventually("second mesh", func(s store.Snapshot) bool {
		return s.Get(resources.Key{Type: resources.TypeMeshTrust, Mesh: "second", Name: "identity-zone-1"}) != nil
	})
	_, err = s.Apply(ctx, store.Batch{Ops: []store.Op{{Delete: mesh("default").Key}}})
	must(t, err)
	eventually("removed with the mesh", func(s store.Snapshot) bool { return s.Get(key) == nil })
	cancel()
	must(t, <-done)
}
