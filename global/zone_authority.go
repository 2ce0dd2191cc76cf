package global

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/secrets"
)

const (
	// zoneCASecret is the name of the authorities among the secrets.
	zoneCASecret = "zone-ca"
	// zoneCALifetime is long: an authority is replaced by rotation, and nobody outside of the globals has to be told.
	zoneCALifetime = 10 * 365 * 24 * time.Hour
	// maxZoneCAs bounds how many authorities overlap.
	maxZoneCAs = 8
)

// zoneAuthority signs the certificates that zones connect with, and verifies them. Its keys are in the store, sealed, so that
// every global of one store has them: the newest signs, the ones before it are accepted until they are retired. Safe for
// concurrent use.
type zoneAuthority struct {
	keeper   *secrets.Keeper
	lifetime time.Duration
	now      func() time.Time
	copy     *zoneCACopy

	mu      sync.Mutex
	version uint64   // guarded by mu: of ring in the store
	ring    []zoneCA // guarded by mu; its elements are never changed
}

// zoneCA is one authority.
type zoneCA struct {
	id      string
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	created time.Time
}

// storedCA is a zoneCA in the secret: DER of the certificate, PKCS #8 of the key.
type storedCA struct {
	Certificate []byte    `json:"certificate"`
	Key         []byte    `json:"key"`
	Created     time.Time `json:"created"`
}

// openZoneAuthority reads the authorities: from the store, or from the copy beside one that has none; without both it makes the
// first one.
func openZoneAuthority(ctx context.Context, keeper *secrets.Keeper, c *Config, box *secrets.Box) (*zoneAuthority, error) {
	a := &zoneAuthority{keeper: keeper, lifetime: c.ZoneCredentialLifetime, now: c.Now, copy: newZoneCACopy(c, box)}
	ring, _, err := a.current(ctx)
	if err != nil || len(ring) > 0 {
		return a, err
	}
	if found, err := a.recover(ctx); err != nil || found {
		return a, err
	}
	_, err = a.rotate(ctx)
	return a, err
}

// current returns the authorities as the store has them, the one that signs last.
func (a *zoneAuthority) current(ctx context.Context) (ring []zoneCA, version uint64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if v := a.keeper.Version(zoneCASecret); v == a.version {
		return a.ring, a.version, nil
	}
	plain, version, err := a.keeper.Get(ctx, zoneCASecret)
	if errors.Is(err, secrets.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if ring, err = parseZoneCAs(plain); err != nil {
		return nil, 0, fmt.Errorf("secret %s: %w", zoneCASecret, err)
	}
	a.ring, a.version = ring, version
	a.copy.write(plain)
	return ring, version, nil
}

// parseZoneCAs reads what store writes. Errors wrap secrets.ErrDamaged.
func parseZoneCAs(plain []byte) (ring []zoneCA, err error) {
	var stored []storedCA
	if err := json.Unmarshal(plain, &stored); err != nil || len(stored) == 0 {
		return nil, secrets.ErrDamaged
	}
	for _, s := range stored {
		ca, err := s.load()
		if err != nil {
			return nil, err
		}
		ring = append(ring, ca)
	}
	return ring, nil
}

func (s *storedCA) load() (zoneCA, error) {
	cert, err := x509.ParseCertificate(s.Certificate)
	if err != nil {
		return zoneCA{}, secrets.ErrDamaged
	}
	key, err := x509.ParsePKCS8PrivateKey(s.Key)
	signer, ok := key.(*ecdsa.PrivateKey)
	if err != nil || !ok || !signer.PublicKey.Equal(cert.PublicKey) {
		return zoneCA{}, secrets.ErrDamaged
	}
	return zoneCA{id: authorityID(cert), cert: cert, key: signer, created: s.Created}, nil
}

// authorityID names an authority in lists and logs.
func authorityID(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:8])
}

// store replaces the authorities, unless somebody else did in between: secrets.ErrChanged.
func (a *zoneAuthority) store(ctx context.Context, ring []zoneCA, version uint64) error {
	stored := make([]storedCA, 0, len(ring))
	for _, ca := range ring {
		der, err := x509.MarshalPKCS8PrivateKey(ca.key)
		if err != nil {
			return err
		}
		stored = append(stored, storedCA{Certificate: ca.cert.Raw, Key: der, Created: ca.created})
	}
	plain, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	_, err = a.keeper.Put(ctx, zoneCASecret, plain, version)
	return err
}

// rotate makes a new authority, which signs from now on. Those before it are accepted until they are retired.
func (a *zoneAuthority) rotate(ctx context.Context) (id string, err error) {
	for {
		ring, version, err := a.current(ctx)
		if err != nil {
			return "", err
		}
		if len(ring) >= maxZoneCAs {
			return "", fmt.Errorf("%w: %d authorities are accepted already: retire one first", errKeyring, len(ring))
		}
		ca, err := newZoneCA(a.now())
		if err != nil {
			return "", err
		}
		err = a.store(ctx, append(slices.Clone(ring), ca), version)
		if errors.Is(err, secrets.ErrChanged) && version == 0 {
			return "", nil // another global made the first one
		}
		if !errors.Is(err, secrets.ErrChanged) {
			return ca.id, err
		}
	}
}

// retire stops accepting an authority. The one that signs cannot be.
func (a *zoneAuthority) retire(ctx context.Context, id string) error {
	for {
		ring, version, err := a.current(ctx)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(ring, func(ca zoneCA) bool { return ca.id == id })
		switch {
		case at < 0:
			return fmt.Errorf("%w: there is no zone CA %s", errNoKey, id)
		case at == len(ring)-1:
			return fmt.Errorf("%w: zone CA %s is the one that signs: rotate first", errKeyring, id)
		}
		err = a.store(ctx, slices.Delete(slices.Clone(ring), at, at+1), version)
		if !errors.Is(err, secrets.ErrChanged) {
			return err
		}
	}
}

// signing is the id of the authority that signs now.
func (a *zoneAuthority) signing(ctx context.Context) (string, error) {
	ring, _, err := a.current(ctx)
	if err != nil || len(ring) == 0 {
		return "", err
	}
	return ring[len(ring)-1].id, nil
}

// accepts reports whether certificates of an authority are good.
func (a *zoneAuthority) accepts(ctx context.Context, id string) bool {
	ring, _, err := a.current(ctx)
	return err == nil && slices.ContainsFunc(ring, func(ca zoneCA) bool { return ca.id == id })
}

func newZoneCA(now time.Time) (zoneCA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return zoneCA{}, err
	}
	serial, err := newSerial()
	if err != nil {
		return zoneCA{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Causeway zone CA"},
		NotBefore: now.Add(-enrolment.DatedBack), NotAfter: now.Add(zoneCALifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return zoneCA{}, err
	}
	cert, err := x509.ParseCertificate(der)
	return zoneCA{id: authorityID(cert), cert: cert, key: key, created: now.UTC()}, err
}

func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, err
	}
	return serial.Add(serial, big.NewInt(1)), nil
}

// heldCertificate is what is known of a certificate that was verified, or signed just now.
type heldCertificate struct {
	enrolment.Member
	serial, authority string
	issued, expires   time.Time
}

// sign makes the certificate of a member for the key of its request.
func (a *zoneAuthority) sign(ctx context.Context, m enrolment.Member, request *x509.CertificateRequest) (der []byte, held heldCertificate, err error) {
	if err := checkZoneKey(request.PublicKey); err != nil {
		return nil, held, err
	}
	ring, _, err := a.current(ctx)
	if err != nil {
		return nil, held, err
	}
	ca, now := ring[len(ring)-1], a.now()
	serial, err := newSerial()
	if err != nil {
		return nil, held, err
	}
	expires := now.Add(a.lifetime).Truncate(time.Second)
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: m.Zone}, URIs: []*url.URL{m.URI()},
		NotBefore: now.Add(-enrolment.DatedBack), NotAfter: expires,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err = x509.CreateCertificate(rand.Reader, template, ca.cert, request.PublicKey, ca.key)
	return der, heldCertificate{Member: m, serial: serial.Text(16), authority: ca.id, issued: now, expires: expires}, err
}

// checkZoneKey takes the kinds of keys that zones of ours make.
func checkZoneKey(key any) error {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() || k.Curve == elliptic.P384() {
			return nil
		}
	case ed25519.PublicKey:
		return nil
	}
	return fmt.Errorf("%w: the key of the signing request is neither ECDSA P-256, P-384 nor Ed25519", kds.ErrRequest)
}

// expired refuses a certificate whose time is over, unless the clock is wrong, which is easily seen then.
func expired(end, now time.Time) error {
	return fmt.Errorf("%w: the zone's certificate has expired at %s: make a new join string for it, unless the global's clock is wrong, which says %s",
		kds.ErrUnauthenticated, end.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
}

// verify judges the certificates that a zone showed. Errors wrap kds.ErrUnauthenticated.
func (a *zoneAuthority) verify(ctx context.Context, shown []*x509.Certificate) (held heldCertificate, err error) {
	ring, _, err := a.current(ctx)
	if err != nil {
		return held, err
	}
	roots := x509.NewCertPool()
	for _, ca := range ring {
		roots.AddCert(ca.cert)
	}
	leaf, now := shown[0], a.now()
	if now.After(leaf.NotAfter) {
		return held, expired(leaf.NotAfter, now)
	}
	if now.Before(leaf.NotBefore) {
		now = leaf.NotBefore // of ours it was signed here, and our clock has gone back since: it is as good as it was
	}
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return held, fmt.Errorf("%w: the certificate is not of this global's zone CA", kds.ErrUnauthenticated)
	}
	if held.Member, err = enrolment.ParseMember(leaf.URIs); err != nil {
		return held, fmt.Errorf("%w: the certificate names no zone", kds.ErrUnauthenticated)
	}
	issuer := slices.IndexFunc(ring, func(ca zoneCA) bool { return bytes.Equal(ca.cert.Raw, chains[0][len(chains[0])-1].Raw) })
	if issuer < 0 {
		return held, fmt.Errorf("%w: the certificate is not of this global's zone CA", kds.ErrUnauthenticated)
	}
	held.serial, held.authority = leaf.SerialNumber.Text(16), ring[issuer].id
	held.issued, held.expires = leaf.NotBefore.Add(enrolment.DatedBack), leaf.NotAfter
	return held, nil
}
