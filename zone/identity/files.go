package identity

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/credential"
)

const (
	certificateFile = "ca.crt"
	keyFile         = "ca.key"
)

// loadAuthority reads the authority that an earlier version stored unencrypted in dir.
func loadAuthority(dir string, domain spiffeid.TrustDomain, now time.Time) (*Authority, error) {
	keyDER, err := readPEM(dir, keyFile, "PRIVATE KEY", credential.Own)
	if err != nil {
		return nil, err
	}
	der, err := readPEM(dir, certificateFile, "CERTIFICATE", credential.Public)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(keyDER)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s holds a %T, not an ECDSA key", keyFile, parsed)
	}
	a, err := authorityOf(domain, der, key)
	if err != nil {
		return nil, err
	}
	if now.After(a.cert.NotAfter) {
		return nil, fmt.Errorf("%s expired on %s", certificateFile, a.cert.NotAfter.Format(time.RFC3339))
	}
	return a, nil
}

// readPEM returns the only block of a file, which must be of the given kind.
func readPEM(dir, name, kind string, read func(name, path string) ([]byte, error)) ([]byte, error) {
	raw, err := read(name, filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(raw)
	if block == nil || block.Type != kind || len(rest) > 0 {
		return nil, fmt.Errorf("%s is not one PEM block of type %s: it was damaged or cut", name, kind)
	}
	return block.Bytes, nil
}
