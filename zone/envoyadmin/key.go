package envoyadmin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"time"

	"github.com/causeway-mesh/causeway/secrets"
)

// keySecret is the name of the zone's key among the keeper's secrets.
const keySecret = "envoy-admin-key"

// Key authenticates the zone to its Envoys. All servers of the zone have the same one, if it can be stored.
type Key struct {
	certificate tls.Certificate
	// Pin is the SHA-256 of the public key, in base64, as Envoy's verify_certificate_spki has it.
	Pin string
}

// OpenKey returns the zone's key, and creates one if there is none. A key that cannot be stored or read does not stop
// the zone: this server then has its own key until it restarts, which only its own Envoys know. It fails if ctx ends.
func OpenKey(ctx context.Context, keeper *secrets.Keeper, log *slog.Logger) (*Key, error) {
	key, err := storedKey(ctx, keeper)
	if err == nil || ctx.Err() != nil {
		return key, err
	}
	log.Error("the key for the admin interfaces of proxies cannot be kept: this server has its own until it restarts",
		"error", err)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return newKey(private)
}

// storedKey returns the key that all servers of the zone share. Errors are those of the keeper.
func storedKey(ctx context.Context, keeper *secrets.Keeper) (*Key, error) {
	raw, _, err := keeper.Get(ctx, keySecret)
	if errors.Is(err, secrets.ErrNotFound) {
		raw, err = makeKey(ctx, keeper)
	}
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(raw)
	if err != nil {
		return nil, err
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("it is a %T, want an ECDSA key", parsed)
	}
	return newKey(private)
}

// makeKey stores a new key, or returns the one that another server stored first.
func makeKey(ctx context.Context, keeper *secrets.Keeper) ([]byte, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	_, err = keeper.Put(ctx, keySecret, raw, 0)
	if errors.Is(err, secrets.ErrChanged) {
		raw, _, err = keeper.Get(ctx, keySecret)
	}
	return raw, err
}

// newKey signs a certificate for the key. Envoys check the key and nothing else of the certificate.
func newKey(private *ecdsa.PrivateKey) (*Key, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "causeway zone"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
	return &Key{Pin: base64.StdEncoding.EncodeToString(sum[:]),
		certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}}, nil
}
