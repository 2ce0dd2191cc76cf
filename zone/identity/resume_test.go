package identity

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
)

// keptWorld is a zone with a clock, in which MeshIdentities are added and removed.
type keptWorld struct {
	t           *testing.T
	store       *store.Memory
	keeper      *secrets.Keeper
	now         time.Time
	authorities *Authorities
}

func newKeptWorld(t *testing.T) *keptWorld {
	t.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	noError(t, err)
	w := &keptWorld{t: t, store: store.NewMemory(), now: time.Now().Add(300 * time.Millisecond)}
	w.keeper = secrets.NewKeeper(w.store, box)
	w.restart()
	return w
}

// restart discards the state in memory.
func (w *keptWorld) restart() {
	w.authorities = NewAuthorities(Config{Keeper: w.keeper, Store: w.store, Zone: "zone-1",
		Now: func() time.Time { return w.now }})
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *keptWorld) dataplane(labels map[string]string) *resources.Resource {
	return &resources.Resource{Key: resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "backend"},
		Labels: labels}
}

func (w *keptWorld) meshIdentity(spec string) {
	w.t.Helper()
	s, err := resources.NewSpec(resources.TypeMeshIdentity, []byte(spec))
	noError(w.t, err)
	_, err = w.store.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: &resources.Resource{
		Key: resources.Key{Type: resources.TypeMeshIdentity, Mesh: "default", Name: "all"}, Spec: s,
	}}}})
	noError(w.t, err)
}

// rotated makes another authority sign.
func (w *keptWorld) rotated() {
	w.t.Helper()
	next, err := w.authorities.Prepare(context.Background(), "default")
	noError(w.t, err)
	noError(w.t, w.authorities.Promote(context.Background(), "default", next))
}

// forged returns a certificate signed by the authority, with contents that it would never issue.
func (w *keptWorld) forged(change func(*x509.Certificate)) []byte {
	w.t.Helper()
	authority, err := w.authorities.For("default")
	noError(w.t, err)
	return w.signedBy(authority.cert, authority.key, change)
}

func (w *keptWorld) signedBy(parent *x509.Certificate, by any, change func(*x509.Certificate)) []byte {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	noError(w.t, err)
	own, err := url.Parse("spiffe://default.zone-1.mesh.local/workload/backend")
	noError(w.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), URIs: []*url.URL{own}, NotBefore: w.now.Add(-skew), NotAfter: w.now.Add(Lifetime),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	noError(w.t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	noError(w.t, err)
	return slices.Concat(der, pkcs8)
}

// TestResume checks that a kept SVID is restored byte for byte, with all its fields.
func TestResume(t *testing.T) {
	t.Parallel()
	w := newKeptWorld(t)
	dp := w.dataplane(nil)
	issued, err := w.authorities.Issue(dp)
	noError(t, err)
	w.restart()
	w.now = issued.RenewAt.Add(-time.Second)
	got, err := w.authorities.Resume(dp, issued.Kept())
	noError(t, err)
	if !bytes.Equal(got.CertificatePEM, issued.CertificatePEM) || !bytes.Equal(got.KeyPEM, issued.KeyPEM) ||
		got.ID != issued.ID ||
		got.Authority != issued.Authority || !got.RenewAt.Equal(issued.RenewAt) || !got.Leaf.Equal(issued.Leaf) ||
		got.By != issued.By {
		t.Errorf("%s by %s until %s was issued, and another one came back: %s by %s until %s", issued.ID,
			issued.Authority, issued.RenewAt, got.ID, got.Authority, got.RenewAt)
	}
	w.meshIdentity(
		`{"selector":{"dataplane":{}},"spiffeID":{"path":"/workload/{{ .Workload }}"},"provider":{"type":"Bundled"}}`)
	if got, err = w.authorities.Resume(dp, issued.Kept()); err != nil || got.By == nil || got.By.Name != "all" {
		t.Errorf("who gives the ID now is not said: %+v, %v", got, err)
	}
	if signed := (&SVID{Leaf: issued.Leaf}).Kept(); signed != nil {
		t.Error("an SVID without its key is kept")
	}
}

// TestResumeAfterALeap checks an identity whose validity is longer, or begins earlier, because the clock was set. A
// proxy that reconnects gets it back with the times that it was issued with, but not once the clock is right.
func TestResumeAfterALeap(t *testing.T) {
	t.Parallel()
	for _, set := range []time.Duration{-48 * time.Hour, 40 * 24 * time.Hour} {
		w := newKeptWorld(t)
		dp, start := w.dataplane(nil), w.now
		first, err := w.authorities.Issue(dp)
		noError(t, err)
		w.now = start.Add(set)
		next, err := w.authorities.Renew(dp, first)
		noError(t, err)
		w.now = w.now.Add(time.Minute)
		got, err := w.authorities.Resume(dp, next.Kept())
		if err != nil || !got.RenewAt.Equal(next.RenewAt) || !got.Issued().Equal(next.Issued()) {
			t.Errorf("set by %s: %+v came back (%v)", set, got, err)
		}
		w.now = start.Add(time.Minute)
		if _, err := w.authorities.Resume(dp, next.Kept()); !errors.Is(err, ErrDue) {
			t.Errorf("set by %s and back: %v", set, err)
		}
		w.now = start.Add(50 * 24 * time.Hour)
		if last, err := w.authorities.Renew(dp, next); err != nil || len(w.authorities.leaps) > 1 {
			t.Errorf("set by %s: %d leaps are remembered after %v, %v", set, len(w.authorities.leaps), last, err)
		}
	}
}

// TestWhatIsNotResumed checks that anything that would not be issued now is refused.
func TestWhatIsNotResumed(t *testing.T) {
	t.Parallel()
	kept := func(w *keptWorld) []byte {
		svid, err := w.authorities.Issue(w.dataplane(nil))
		noError(t, err)
		return svid.Kept()
	}
	forged := func(change func(*x509.Certificate)) func(*keptWorld) []byte {
		return func(w *keptWorld) []byte { return w.forged(change) }
	}
	for _, c := range []struct {
		name   string
		kept   func(*keptWorld) []byte
		then   func(*keptWorld)
		labels map[string]string
		want   error // nil if resumed
	}{
		{"what was issued", kept, nil, nil, nil},
		{"what looks like it", forged(func(*x509.Certificate) {}), nil, nil, nil},
		{"due", kept, func(w *keptWorld) { w.now = w.now.Add(Lifetime / 2) }, nil, ErrDue},
		{"expired", kept, func(w *keptWorld) { w.now = w.now.Add(2 * Lifetime) }, nil, ErrDue},
		{"from the future", kept, func(w *keptWorld) { w.now = w.now.Add(-time.Hour) }, nil, ErrDue},
		{"another workload now", kept, nil, map[string]string{resources.LabelWorkload: "shop"}, ErrOtherIdentity},
		{"a MeshIdentity gives another path", kept, func(w *keptWorld) {
			w.meshIdentity(`{"selector":{"dataplane":{}},"spiffeID":{"path":"/all/{{ .Workload }}"},"provider":{"type":"Bundled"}}`)
		}, nil, ErrOtherIdentity},
		{"a MeshIdentity gives less time", kept, func(w *keptWorld) {
			w.meshIdentity(`{"selector":{"dataplane":{}},"spiffeID":{"path":"/workload/{{ .Workload }}"},"provider":{"type":"Bundled","bundled":{"certificateParameters":{"expiry":"1h"}}}}`)
		}, nil, ErrOtherIdentity},
		{"SPIRE gives the identity now", kept, func(w *keptWorld) {
			w.meshIdentity(`{"selector":{"dataplane":{}},"provider":{"type":"Spire"}}`)
		}, nil, ErrSpire},
		{"the authority was rotated", kept, (*keptWorld).rotated, nil, ErrOtherAuthority},
		{"the authority was retired", kept, func(w *keptWorld) {
			before, err := w.authorities.For("default")
			noError(t, err)
			w.rotated()
			noError(t, w.authorities.Retire(context.Background(), "default", before.id, true))
		}, nil, ErrOtherAuthority},
		{"somebody else's authority", func(w *keptWorld) []byte {
			authority, err := w.authorities.For("default")
			noError(t, err)
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			noError(t, err)
			parent := *authority.cert
			parent.PublicKey = key.Public()
			return w.signedBy(&parent, key, func(*x509.Certificate) {})
		}, nil, nil, ErrOtherAuthority},
		{"the same authority by another name", func(w *keptWorld) []byte {
			authority, err := w.authorities.For("default")
			noError(t, err)
			parent := *authority.cert
			parent.RawSubject, parent.Subject = nil, pkix.Name{CommonName: "another"}
			return w.signedBy(&parent, authority.key, func(*x509.Certificate) {})
		}, nil, nil, ErrOtherAuthority},
		{"the same authority by another key id", func(w *keptWorld) []byte {
			authority, err := w.authorities.For("default")
			noError(t, err)
			parent := *authority.cert
			parent.SubjectKeyId = []byte{1, 2, 3}
			return w.signedBy(&parent, authority.key, func(*x509.Certificate) {})
		}, nil, nil, ErrOtherAuthority},
		{"two names", forged(func(c *x509.Certificate) { c.URIs = append(c.URIs, c.URIs[0]) }), nil, nil, ErrOtherIdentity},
		{"no name", forged(func(c *x509.Certificate) { c.URIs = nil }), nil, nil, ErrOtherIdentity},
		{"a host's name", forged(func(c *x509.Certificate) { c.DNSNames = []string{"backend"} }), nil, nil, ErrOtherIdentity},
		{"an address", forged(func(c *x509.Certificate) { c.IPAddresses = []net.IP{{127, 0, 0, 1}} }), nil, nil,
			ErrOtherIdentity},
		{"a person's", forged(func(c *x509.Certificate) { c.EmailAddresses = []string{"a@example.com"} }), nil, nil,
			ErrOtherIdentity},
		{"an authority", forged(func(c *x509.Certificate) { c.IsCA = true }), nil, nil, ErrOtherIdentity},
		{"one that may sign", forged(func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCertSign }), nil, nil,
			ErrOtherIdentity},
		{"only for clients", forged(func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[1:] }), nil, nil,
			ErrOtherIdentity},
		{"valid for longer", forged(func(c *x509.Certificate) { c.NotAfter = c.NotAfter.Add(time.Minute) }), nil, nil,
			ErrOtherIdentity},
		{"good since long ago", forged(func(c *x509.Certificate) { c.NotBefore = c.NotBefore.Add(-time.Hour) }), nil,
			nil, ErrOtherIdentity},
		{"nothing", func(*keptWorld) []byte { return nil }, nil, nil, ErrUnreadable},
		{"half", func(w *keptWorld) []byte { k := kept(w); return k[:len(k)/2] }, nil, nil, ErrUnreadable},
		{"without its key", func(w *keptWorld) []byte { k := kept(w); return k[:len(k)-138] }, nil, nil, ErrUnreadable},
		{"something behind it", func(w *keptWorld) []byte { return append(kept(w), 0) }, nil, nil, ErrUnreadable},
		{"another's key", func(w *keptWorld) []byte {
			one, two := kept(w), kept(w)
			return append(one[:len(one)-138:len(one)-138], two[len(two)-138:]...)
		}, nil, nil, ErrUnreadable},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newKeptWorld(t)
			kept := c.kept(w)
			if c.then != nil {
				c.then(w)
			}
			w.restart()
			svid, err := w.authorities.Resume(w.dataplane(c.labels), kept)
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) || (svid == nil) != (err != nil) {
				t.Errorf("resumed: %t, %v; want %v", svid != nil, err, c.want)
			}
		})
	}
}

// FuzzKept checks that any kept identity is refused, or equals what would be issued.
func FuzzKept(f *testing.F) {
	authority := fuzzAuthority(f)
	now := time.Now()
	dp := &resources.Resource{Key: resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "backend"}}
	id, err := IDOf(dp, authority.domain)
	if err != nil {
		f.Fatal(err)
	}
	svid, err := authority.issueWithKey(&Assigned{ID: id, Lifetime: Lifetime}, nil, now)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(svid.Kept())
	f.Fuzz(func(t *testing.T, kept []byte) {
		leaf, key, err := readKept(kept)
		if err != nil {
			return
		}
		if back := authority.svid(&Assigned{ID: id}, leaf, key).Kept(); !bytes.Equal(back, kept) {
			t.Fatalf("%x came back as %x", kept, back)
		}
	})
}
