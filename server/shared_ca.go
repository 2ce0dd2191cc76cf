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
)

// ErrOtherCA: the certificate folder has another CA than the one that the replicas of this server share.
var ErrOtherCA = errors.New("the folder has the CA of another server")

// ExportCA returns the folder's CA, certificate and key as PEM, for replicas to share; without one in the folder a new one, which is
// not written. Errors are those of LoadOrCreateCertificate.
func ExportCA(dir string, box Sealer) ([]byte, error) {
	var ca *authority
	_, err := os.Stat(filepath.Join(dir, caCertFile))
	if errors.Is(err, fs.ErrNotExist) {
		ca, err = newCA()
	} else {
		ca, err = loadOrCreateCA(dir, box)
	}
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(ca.key)
	if err != nil {
		return nil, err
	}
	return append(pemBlock("CERTIFICATE", ca.cert.Raw), pemBlock("PRIVATE KEY", key)...), nil
}

// ImportCA makes the folder's CA the one that ExportCA returned elsewhere. It fails with ErrOtherCA where the folder has another:
// peers may have pinned that.
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
	switch here, err := os.ReadFile(certPath); {
	case err == nil && bytes.Equal(here, pemBlock("CERTIFICATE", der)):
		return nil
	case err == nil:
		return fmt.Errorf("%s: %w: the replicas share another; move the folder away to take theirs, and let zones that pinned this one join again", dir, ErrOtherCA)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("certificate folder: %w", err)
	}
	return writeKeyPair(certPath, keyPath, der, key, caKeyPurpose, box)
}
