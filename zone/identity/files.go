package identity

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

const (
	certificateFile = "ca.crt"
	keyFile         = "ca.key"
)

// loadAuthority reads the authority that an earlier version kept in dir, in the clear.
func loadAuthority(dir string, domain spiffeid.TrustDomain, now time.Time) (*Authority, error) {
	info, err := os.Stat(filepath.Join(dir, keyFile))
	if err != nil {
		return nil, err
	}
	if open := info.Mode().Perm() & 0o077; open != 0 {
		return nil, fmt.Errorf("%s can be read by others (mode %04o): run chmod 600, and consider who has seen it", keyFile, info.Mode().Perm())
	}
	der, err := readPEM(dir, certificateFile, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	keyDER, err := readPEM(dir, keyFile, "PRIVATE KEY")
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

// readPEM returns the only block of a file, which must be of one kind.
func readPEM(dir, name, kind string) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(raw)
	if block == nil || block.Type != kind || len(rest) > 0 {
		return nil, fmt.Errorf("%s is not one PEM block of type %s: it was damaged or cut", name, kind)
	}
	return block.Bytes, nil
}
