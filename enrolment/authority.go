package enrolment

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/secrets"
)

const (
	// AuthoritySecret is the name of the secret with the authorities.
	AuthoritySecret = "zone-ca"
	// zoneCALifetime is long, because an authority is replaced by rotation, which needs no action outside of the
	// globals.
	zoneCALifetime = 10 * 365 * 24 * time.Hour
	// maxZoneCAs bounds the number of overlapping authorities.
	maxZoneCAs = 8
)

// Authority signs and verifies the certificates that zones connect with. Its sealed keys are in the store, so that
// every global of one store has them. The newest signs; older ones are accepted until they are retired. Safe for
// concurrent use.
type Authority struct {
	keeper   *secrets.Keeper
	lifetime time.Duration
	now      func() time.Time
	copy     *zoneCACopy

	mu      sync.Mutex
	version uint64 // guarded by mu: the version of ring in the store
	ring    []CA   // guarded by mu; its elements are immutable
}

// CA is one authority. Its key does not leave this package.
type CA struct {
	ID      string
	Cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	Created time.Time
}

// storedCA is a CA in the secret: DER of the certificate, PKCS #8 of the key.
type storedCA struct {
	Certificate []byte    `json:"certificate"`
	Key         []byte    `json:"key"`
	Created     time.Time `json:"created"`
}

// AuthorityConfig configures an Authority.
type AuthorityConfig struct {
	// Lifetime is the lifetime of a zone's certificate, Now the clock.
	Lifetime time.Duration
	Now      func() time.Time
	// Folder holds the copy of the authorities beside the store. Log reports failures to write the copy.
	Folder string
	Log    *slog.Logger
}

// OpenAuthority reads the authorities from the store or, if it has none, from the copy beside it. Without both, it
// creates the first one.
func OpenAuthority(ctx context.Context, keeper *secrets.Keeper, c AuthorityConfig, box *secrets.Box) (*Authority,
	error) {
	a := &Authority{keeper: keeper, lifetime: c.Lifetime, now: c.Now, copy: newZoneCACopy(&c, box)}
	ring, _, err := a.Current(ctx)
	if err != nil || len(ring) > 0 {
		return a, err
	}
	if found, err := a.recover(ctx); err != nil || found {
		return a, err
	}
	_, err = a.Rotate(ctx)
	return a, err
}

// Current returns the authorities in the store, the signing one last. The caller must not change them.
func (a *Authority) Current(ctx context.Context) (ring []CA, version uint64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if v := a.keeper.Version(AuthoritySecret); v == a.version {
		return a.ring, a.version, nil
	}
	plain, version, err := a.keeper.Get(ctx, AuthoritySecret)
	if errors.Is(err, secrets.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if ring, err = parseZoneCAs(plain); err != nil {
		return nil, 0, fmt.Errorf("secret %s: %w", AuthoritySecret, err)
	}
	a.ring, a.version = ring, version
	a.copy.write(plain)
	return ring, version, nil
}

// parseZoneCAs parses the output of store. Errors wrap secrets.ErrDamaged.
func parseZoneCAs(plain []byte) (ring []CA, err error) {
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

func (s *storedCA) load() (CA, error) {
	cert, err := x509.ParseCertificate(s.Certificate)
	if err != nil {
		return CA{}, secrets.ErrDamaged
	}
	key, err := x509.ParsePKCS8PrivateKey(s.Key)
	signer, ok := key.(*ecdsa.PrivateKey)
	if err != nil || !ok || !signer.PublicKey.Equal(cert.PublicKey) {
		return CA{}, secrets.ErrDamaged
	}
	return CA{ID: authorityID(cert), Cert: cert, key: signer, Created: s.Created}, nil
}

// authorityID returns the ID of an authority in lists and logs.
func authorityID(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:8])
}

// store replaces the authorities. It returns secrets.ErrChanged if another writer was first.
func (a *Authority) store(ctx context.Context, ring []CA, version uint64) error {
	stored := make([]storedCA, 0, len(ring))
	for _, ca := range ring {
		der, err := x509.MarshalPKCS8PrivateKey(ca.key)
		if err != nil {
			return err
		}
		stored = append(stored, storedCA{Certificate: ca.Cert.Raw, Key: der, Created: ca.Created})
	}
	plain, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	_, err = a.keeper.Put(ctx, AuthoritySecret, plain, version)
	return err
}

// Rotate creates an authority, which signs from now on. Older ones are accepted until they are retired.
func (a *Authority) Rotate(ctx context.Context) (id string, err error) {
	for {
		ring, version, err := a.Current(ctx)
		if err != nil {
			return "", err
		}
		if len(ring) >= maxZoneCAs {
			why := fmt.Errorf("%w: %d authorities are accepted already: retire one first", ErrKeyring, len(ring))
			if err := a.confirmed(ctx, version, why); !errors.Is(err, secrets.ErrChanged) {
				return "", err
			}
			continue
		}
		ca, err := newZoneCA(a.now())
		if err != nil {
			return "", err
		}
		err = a.store(ctx, append(slices.Clone(ring), ca), version)
		if errors.Is(err, secrets.ErrChanged) && version == 0 {
			return "", nil // another global created the first one
		}
		if !errors.Is(err, secrets.ErrChanged) {
			return ca.ID, err
		}
	}
}

// Retire stops accepting an authority. It refuses to retire the signing one.
func (a *Authority) Retire(ctx context.Context, id string) error {
	for {
		ring, version, err := a.Current(ctx)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(ring, func(ca CA) bool { return ca.ID == id })
		switch {
		case at < 0:
			err = a.confirmed(ctx, version, fmt.Errorf("%w: zone CA %s not found", ErrNoKey, id))
		case at == len(ring)-1:
			err = a.confirmed(ctx, version, fmt.Errorf("%w: zone CA %s signs new certificates: rotate first, then retire it", ErrKeyring, id))
		default:
			err = a.store(ctx, slices.Delete(slices.Clone(ring), at, at+1), version)
		}
		if !errors.Is(err, secrets.ErrChanged) {
			return err
		}
	}
}

// confirmed returns a refusal based on a version of the authorities once that is known to be the newest; until then
// secrets.ErrChanged, or the store's error.
func (a *Authority) confirmed(ctx context.Context, version uint64, refusal error) error {
	return cmp.Or(a.keeper.Confirm(ctx, AuthoritySecret, version), refusal)
}

// Signing returns the ID of the signing authority.
func (a *Authority) Signing(ctx context.Context) (string, error) {
	ring, _, err := a.Current(ctx)
	if err != nil || len(ring) == 0 {
		return "", err
	}
	return ring[len(ring)-1].ID, nil
}

// Accepts reports whether certificates of an authority are accepted.
func (a *Authority) Accepts(ctx context.Context, id string) bool {
	ring, _, err := a.Current(ctx)
	return err == nil && slices.ContainsFunc(ring, func(ca CA) bool { return ca.ID == id })
}

func newZoneCA(now time.Time) (CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return CA{}, err
	}
	serial, err := newSerial()
	if err != nil {
		return CA{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Causeway zone CA"},
		NotBefore: now.Add(-datedBack), NotAfter: now.Add(zoneCALifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return CA{}, err
	}
	cert, err := x509.ParseCertificate(der)
	return CA{ID: authorityID(cert), Cert: cert, key: key, Created: now.UTC()}, err
}
