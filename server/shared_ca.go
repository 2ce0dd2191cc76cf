package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/causeway-mesh/causeway/credential"
)

// ErrOtherCA reports that the certificate folder has another CA than the one that this server's replicas share.
var ErrOtherCA = errors.New("the folder has the CA of another server")

// ExportCA returns the folder's CA, certificate and key as PEM, for replicas to share. If the folder has none, it
// returns a new one without writing it. Errors are those of LoadOrCreateCertificate.
func ExportCA(dir string, box Sealer, now time.Time) ([]byte, error) {
	if !hasCA(dir) {
		return NewCA(now)
	}
	ca, err := loadOrCreateCA(dir, box, now)
	if err != nil {
		return nil, err
	}
	return ca.pem()
}

// NewCA returns a new CA without storing it, in the form of ExportCA.
func NewCA(now time.Time) ([]byte, error) {
	ca, err := newCA(now)
	if err != nil {
		return nil, err
	}
	return ca.pem()
}

// pem returns the certificate and the key, in plain text.
func (a *authority) pem() ([]byte, error) {
	key, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, err
	}
	return append(pemBlock(certificateBlock, a.cert.Raw), pemBlock("PRIVATE KEY", key)...), nil
}

// SetAsideCA moves the CA of a certificate folder, and what it signed, into a new folder below it, and returns that
// folder's path, or "" if there is nothing to move. Other files of the folder stay. The folder's server must be
// stopped. If the process is killed, the folder has the whole CA, which the next start may complete from its key, or
// none.
func SetAsideCA(dir string, now time.Time) (string, error) {
	aside := filepath.Join(dir, "replaced-"+now.UTC().Format("20060102-150405.000"))
	var there []string
	for _, name := range []string{tlsCertFile, tlsKeyFile, caCertFile, caKeyFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.MkdirAll(aside, 0o700); err != nil {
			return "", err
		}
		if err := os.Link(filepath.Join(dir, name), filepath.Join(aside, name)); err != nil {
			return "", err
		}
		there = append(there, name)
	}
	if len(there) == 0 {
		return "", nil
	}
	for _, name := range there { // the key of the CA last: until then all of it exists
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return aside, nil
}

// ImportCA makes the result of ExportCA the folder's CA. It fails with ErrOtherCA if the folder has another, which
// peers may have pinned.
func ImportCA(dir string, pair []byte, box Sealer) error {
	parsed, err := tls.X509KeyPair(pair, pair)
	if err != nil {
		return fmt.Errorf("the CA that replicas share: %w", err)
	}
	key, ok := parsed.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return errors.New("the CA that replicas share: want an ECDSA key")
	}
	certPath, keyPath := filepath.Join(dir, caCertFile), filepath.Join(dir, caKeyFile)
	der := parsed.Certificate[0]
	switch here, err := credential.Public(caCertFile, certPath); {
	case err == nil && bytes.Equal(here, pemBlock(certificateBlock, der)):
		return nil
	case err == nil:
		return fmt.Errorf("%s: %w: the replicas share another: causeway-global replace-ca --take, with the settings of run, adopts it; zones that pinned this one must join again", dir, ErrOtherCA)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("certificate folder: %w", err)
	}
	return writeKeyPair(certPath, keyPath, der, key, caKeyPurpose, box)
}
