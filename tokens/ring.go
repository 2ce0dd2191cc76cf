package tokens

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// maxKeys bounds a ring, because each key can sign tokens that this server accepts.
	maxKeys = 32
	// minRSABits is the minimum size of an RS256 key.
	minRSABits = 2048
	maxRSABits = 8192
)

// Key describes a key without its secret part.
type Key struct {
	ID string `json:"kid"`
	// Algorithm is EdDSA or RS256.
	Algorithm string    `json:"algorithm"`
	Created   time.Time `json:"created"`
	// Signing reports whether this key signs new tokens.
	Signing bool `json:"signing"`
	// Imported reports whether the server has only the public half.
	Imported bool `json:"imported"`
}

// ringKey is a key as the secret stores it, with either Private (the seed of an Ed25519 key) or Public (PKIX).
type ringKey struct {
	ID      string    `json:"kid"`
	Created time.Time `json:"created"`
	Private []byte    `json:"private,omitempty"`
	Public  []byte    `json:"public,omitempty"`

	method jwt.SigningMethod
	verify crypto.PublicKey
}

// ring holds all keys, oldest first. The last one with a private half signs.
type ring struct {
	Keys []*ringKey `json:"keys"`
}

// newKey generates an Ed25519 key. Its id is a digest of its public half.
func newKey(now time.Time) (*ringKey, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(public)
	k := &ringKey{ID: base64.RawURLEncoding.EncodeToString(sum[:12]), Created: now.UTC(), Private: private.Seed()}
	return k, k.ready()
}

// ready derives the method and the key for verification. The algorithm follows from the key alone.
func (k *ringKey) ready() error {
	if len(k.Private) > 0 {
		if len(k.Private) != ed25519.SeedSize {
			return fmt.Errorf("%w %q: the private half has a wrong size", ErrKey, k.ID)
		}
		k.method, k.verify = jwt.SigningMethodEdDSA, ed25519.NewKeyFromSeed(k.Private).Public()
		return nil
	}
	public, err := x509.ParsePKIXPublicKey(k.Public)
	if err != nil {
		return fmt.Errorf("%w %q: %w", ErrKey, k.ID, err)
	}
	switch public := public.(type) {
	case ed25519.PublicKey:
		k.method = jwt.SigningMethodEdDSA
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return fmt.Errorf("%w %q: an RSA key of %d bits: want %d to %d", ErrKey, k.ID, bits, minRSABits, maxRSABits)
		}
		k.method = jwt.SigningMethodRS256
	default:
		return fmt.Errorf("%w %q: a key of type %T: want Ed25519 or RSA", ErrKey, k.ID, public)
	}
	k.verify = public
	return nil
}

// signing returns the private half of a key that has one.
func (k *ringKey) signing() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(k.Private) }

var keyID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// importedKey reads a public key in PEM.
func importedKey(publicKeyPEM []byte, kid string, now time.Time) (*ringKey, error) {
	if !keyID.MatchString(kid) {
		return nil, fmt.Errorf("%w: the id %q: want 1 to 64 letters, digits, '.', '_' or '-'", ErrKey, kid)
	}
	block, rest := pem.Decode(publicKeyPEM)
	if block == nil || block.Type != "PUBLIC KEY" || len(rest) > 0 {
		return nil, fmt.Errorf("%w %q: want one PEM block of type PUBLIC KEY", ErrKey, kid)
	}
	k := &ringKey{ID: kid, Created: now.UTC(), Public: block.Bytes}
	return k, k.ready()
}

func decodeRing(plain []byte) (*ring, error) {
	var r ring
	if err := json.Unmarshal(plain, &r); err != nil {
		return nil, fmt.Errorf("%w: the ring of keys cannot be read", ErrKey) // the decoder's error would quote it
	}
	for _, k := range r.Keys {
		if err := k.ready(); err != nil {
			return nil, err
		}
	}
	return &r, nil
}

func (r *ring) find(kid string) *ringKey {
	for _, k := range r.Keys {
		if k.ID == kid {
			return k
		}
	}
	return nil
}

// signer returns the key that signs new tokens, or nil.
func (r *ring) signer() *ringKey {
	for _, k := range slices.Backward(r.Keys) {
		if len(k.Private) > 0 {
			return k
		}
	}
	return nil
}

func (r *ring) add(k *ringKey) error {
	switch {
	case r.find(k.ID) != nil:
		return fmt.Errorf("%w %q already exists: choose another id, or retire that one first", ErrKey, k.ID)
	case len(r.Keys) >= maxKeys:
		return fmt.Errorf("%w: there are %d already: retire old ones first", ErrKey, len(r.Keys))
	}
	r.Keys = append(r.Keys, k)
	return nil
}

func (r *ring) retire(kid string) error {
	switch k := r.find(kid); k {
	case nil:
		return fmt.Errorf("%w: token key %s not found", ErrNoKey, kid)
	case r.signer():
		return fmt.Errorf("%w %q signs new tokens: rotate first, then retire it", ErrKey, kid)
	default:
		r.Keys = slices.DeleteFunc(r.Keys, func(o *ringKey) bool { return o == k })
		return nil
	}
}

func (r *ring) list() []Key {
	out := make([]Key, len(r.Keys))
	signer := r.signer()
	for i, k := range r.Keys {
		out[i] = Key{ID: k.ID, Algorithm: k.method.Alg(), Created: k.Created, Signing: k == signer,
			Imported: len(k.Private) == 0}
	}
	return out
}
