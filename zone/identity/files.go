package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// takenOver removes the files of an authority that the keeper has. A server that was killed before may have left them.
func (a *Authorities) takenOver(meshDomain string, h *held) error {
	if a.cfg.Dir == "" || meshDomain != MeshOfDomain(meshDomain) {
		return nil
	}
	dir := filepath.Join(a.cfg.Dir, meshDomain)
	der, err := readPEM(dir, certificateFile, "CERTIFICATE", credential.Public)
	if err != nil || !slices.ContainsFunc(h.all, func(one *Authority) bool { return bytes.Equal(one.cert.Raw, der) }) {
		return nil //nolint:nilerr // there are no such files, or those of an authority that was not taken over
	}
	// The key first: as long as there is one, the certificate says whose it is.
	if err := os.Remove(filepath.Join(dir, keyFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}

// readPEM returns the only block of a file, which must be of the given kind.
func readPEM(dir, name, kind string, read func(name, path string) ([]byte, error)) ([]byte, error) {
	raw, err := read(name, filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(raw)
	if block == nil || block.Type != kind || len(rest) > 0 {
		return nil, fmt.Errorf("%s is not one PEM block of type %s: it is damaged or truncated", name, kind)
	}
	return block.Bytes, nil
}
