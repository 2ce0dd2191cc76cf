package secrets

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"sync"

	"golang.org/x/crypto/scrypt"
)

// The sealed form: magic, the kind of root key, the salt of the passphrase (zeros with a key file), the fingerprint of
// the root key, the salt of this secret, then AES-256-GCM's nonce, ciphertext and tag. Everything before the nonce is
// authenticated too, together with the purpose.
const (
	magic           = "cwseal1\n"
	byKeyFile       = 'k'
	byPassphrase    = 'p'
	saltSize        = 16
	fingerprintSize = 8
	rootKeySize     = 32
	headerSize      = len(magic) + 1 + saltSize + fingerprintSize + saltSize
)

// These set the cost of a guess at the passphrase: 32 MiB and some tens of milliseconds. Source: the scrypt package's
// own advice.
const (
	scryptN = 1 << 15
	scryptR = 8
	scryptP = 1
	// maxDerived bounds the derived root keys, one for each salt, that are kept.
	maxDerived = 256
)

// Box seals each secret with AES-256-GCM under a key of its own, derived (HKDF-SHA256) from one root key. The root key
// is read from a file or derived (scrypt) from a passphrase. Safe for concurrent use.
type Box struct {
	kind       byte
	passphrase string
	// salt is for deriving the root key from the passphrase; zeros for a key file.
	salt [saltSize]byte

	mu    sync.Mutex
	roots map[[saltSize]byte][]byte // guarded by mu
}

func boxOfKey(key []byte) *Box {
	return &Box{kind: byKeyFile, roots: map[[saltSize]byte][]byte{{}: key}}
}

func boxOfPassphrase(passphrase string) (*Box, error) {
	b := &Box{kind: byPassphrase, passphrase: passphrase, roots: map[[saltSize]byte][]byte{}}
	if _, err := rand.Read(b.salt[:]); err != nil {
		return nil, err
	}
	_, err := b.root(b.salt)
	return b, err
}

// root returns the root key for a salt.
func (b *Box) root(salt [saltSize]byte) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if key := b.roots[salt]; key != nil {
		return key, nil
	}
	key, err := scrypt.Key([]byte(b.passphrase), salt[:], scryptN, scryptR, scryptP, rootKeySize)
	if err != nil {
		return nil, err
	}
	if len(b.roots) >= maxDerived {
		clear(b.roots)
	}
	b.roots[salt] = key
	return key, nil
}

// Seal encrypts plain. purpose names the use of the secret, such as "zone-ca"; Open needs the same purpose. Two seals
// of the same secret differ.
func (b *Box) Seal(plain []byte, purpose string) ([]byte, error) {
	root, err := b.root(b.salt)
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", purpose, err)
	}
	out := make([]byte, 0, headerSize+len(plain)+64)
	out = append(out, magic...)
	out = append(out, b.kind)
	out = append(out, b.salt[:]...)
	mark, err := fingerprint(root)
	if err != nil {
		return nil, err
	}
	out = append(out, mark...)
	var own [saltSize]byte
	if _, err := rand.Read(own[:]); err != nil {
		return nil, err
	}
	out = append(out, own[:]...)
	aead, err := aeadOf(root, own[:], purpose)
	if err != nil {
		return nil, err
	}
	return aead.Seal(out, nil, plain, boundTo(out, purpose)), nil //nolint:gosec // this AEAD makes its random nonce itself
}

// Open decrypts the output of Seal for the same purpose. Errors wrap ErrWrongKey or ErrDamaged and never contain any
// part of the secret. ErrWrongKey may also be damage to the few bytes that name the key.
func (b *Box) Open(sealed []byte, purpose string) ([]byte, error) {
	if !IsSealed(sealed) || len(sealed) < headerSize {
		return nil, fmt.Errorf("%s: %w: it does not have the header of a sealed secret", purpose, ErrDamaged)
	}
	header := sealed[:headerSize]
	rest := header[len(magic):]
	switch kind := rest[0]; {
	case kind != byKeyFile && kind != byPassphrase:
		return nil, fmt.Errorf("%s: %w", purpose, ErrDamaged)
	case kind != b.kind:
		return nil, fmt.Errorf("%s: %w: it was sealed with a %s, and the server was given a %s", purpose, ErrWrongKey,
			kindName(kind), kindName(b.kind))
	}
	salt, mark, own := [saltSize]byte(rest[1:1+saltSize]), rest[1+saltSize:1+saltSize+fingerprintSize],
		rest[1+saltSize+fingerprintSize:]
	if b.kind == byKeyFile && salt != [saltSize]byte{} {
		return nil, fmt.Errorf("%s: %w", purpose, ErrDamaged)
	}
	root, err := b.root(salt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", purpose, err)
	}
	here, err := fingerprint(root)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(mark, here) {
		return nil, fmt.Errorf("%s: %w, or damaged: it does not name the %s that the server was given; give it the one it "+
			"was sealed with, or, if that is the one, restore it from a backup", purpose, ErrWrongKey, kindName(b.kind))
	}
	aead, err := aeadOf(root, own, purpose)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, sealed[headerSize:], boundTo(header, purpose))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", purpose, ErrDamaged)
	}
	return plain, nil
}

// IsSealed reports, by their magic, whether the bytes come from Seal, as opposed to a plain-text secret.
func IsSealed(b []byte) bool { return bytes.HasPrefix(b, []byte(magic)) }

func kindName(kind byte) string {
	if kind == byPassphrase {
		return "passphrase"
	}
	return "key file"
}

// fingerprint distinguishes root keys without revealing them.
func fingerprint(root []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, root, nil, "causeway secrets fingerprint", fingerprintSize)
}

func aeadOf(root, salt []byte, purpose string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, root, salt, "causeway secret "+purpose, rootKeySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func boundTo(header []byte, purpose string) []byte {
	return append(bytes.Clone(header[:headerSize]), purpose...)
}
