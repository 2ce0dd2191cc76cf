package server

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/causeway-mesh/causeway/credential"
)

// Files of a certificate folder. Clients pin the CA's certificate. The sealed keys never leave the folder. The CA's key
// file also contains its certificate, so that the CA appears at once: whenever the process ends, all of it exists or
// none.
const (
	caCertFile  = "ca.crt"
	caKeyFile   = "ca.key"
	tlsCertFile = "tls.crt"
	tlsKeyFile  = "tls.key"
)

// Purposes for which keys are sealed.
const (
	caKeyPurpose  = "server-ca"
	tlsKeyPurpose = "server-tls"
)

// certificateBlock is the kind of a PEM block.
const certificateBlock = "CERTIFICATE"

// errSealed reports that the file may be good, but not for this box.
var errSealed = errors.New("its sealed key")

// Sealer seals keys at rest, each for a purpose.
type Sealer interface {
	Seal(plain []byte, purpose string) ([]byte, error)
	Open(sealed []byte, purpose string) ([]byte, error)
}

const (
	caLifetime   = 10 * 365 * 24 * time.Hour
	leafLifetime = 365 * 24 * time.Hour
	// renewBefore is how long before its expiry a serving certificate is replaced.
	renewBefore = 30 * 24 * time.Hour
	// clockSkew is how far behind the clock of a client may be. Nobody gains by a certificate that is older than its key.
	clockSkew = 24 * time.Hour
)

// Certificate is a serving certificate and the CA that signed it, kept in one folder.
type Certificate struct {
	// CAPEM is the CA's certificate.
	CAPEM []byte
	// CASHA256 is the SHA-256 of the CA certificate's DER, in lower-case hex, which peers pin.
	CASHA256 string
	// MinVersion is the minimum TLS version, as returned by ParseTLSVersion; zero means 1.3.
	MinVersion uint16

	folder certificateFolder
	ca     *authority
	leaf   atomic.Pointer[tls.Certificate]
}

// certificateFolder is the folder of a Certificate, and the names that it must cover.
type certificateFolder struct {
	dir   string
	hosts []string
	box   Sealer
	now   func() time.Time
}

// Expiries returns when the serving certificate and its CA expire. A nil certificate has none.
func (c *Certificate) Expiries() map[string]time.Time {
	if c == nil {
		return nil
	}
	return map[string]time.Time{"server": c.leaf.Load().Leaf.NotAfter, "server-ca": c.ca.cert.NotAfter}
}

// LoadOrCreateCertificate reads the folder's CA and serving certificate, and creates what is missing: the CA at the
// first start, and the serving certificate also if it expires within 30 days, was created by a clock that was ahead, or
// does not cover hosts (DNS names and IP addresses; localhost and the loopback addresses are always covered). A CA that
// exists but cannot be used is an error and is never replaced: zones that pinned it would be locked out. box seals the
// keys, including those that an earlier version kept in plain text; a box with another key is an error and changes
// nothing. now is the clock.
func LoadOrCreateCertificate(dir string, hosts []string, box Sealer, now func() time.Time) (*Certificate, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("certificate folder: %w", err)
	}
	ca, err := loadOrCreateCA(dir, box, now())
	if err != nil {
		return nil, err
	}
	folder := certificateFolder{dir: dir, hosts: slices.Concat(hosts, []string{"localhost", "127.0.0.1", "::1"}),
		box: box, now: now}
	leaf, err := folder.loadOrCreateLeaf(ca)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(ca.cert.Raw)
	c := &Certificate{CAPEM: pemBlock(certificateBlock, ca.cert.Raw), CASHA256: hex.EncodeToString(sum[:]),
		folder: folder, ca: ca}
	c.leaf.Store(leaf)
	return c, nil
}

// TLSConfig returns a new server configuration, which presents the current serving certificate at each handshake. The
// chain includes the CA, so that a client that only knows its SHA-256 can verify it.
func (c *Certificate) TLSConfig() *tls.Config {
	return &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.leaf.Load(), nil },
		Time:           c.folder.now,
		MinVersion:     cmp.Or(c.MinVersion, tls.VersionTLS13), CipherSuites: forwardSecret(),
	}
}

// forwardSecret returns the supported cipher suites of TLS 1.2: those with forward secrecy and authenticated
// encryption. In TLS 1.3 all have both. Go chooses the curves, beginning with X25519MLKEM768.
func forwardSecret() []uint16 {
	return []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
}

// CertificateFiles returns the files of the CA in a folder. Without them, a restart would create another CA.
func CertificateFiles(dir string) []string {
	return []string{filepath.Join(dir, caCertFile), filepath.Join(dir, caKeyFile)}
}

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func loadOrCreateCA(dir string, box Sealer, now time.Time) (*authority, error) {
	certPath, keyPath := filepath.Join(dir, caCertFile), filepath.Join(dir, caKeyFile)
	if !hasCA(dir) {
		return createCA(certPath, keyPath, box, now)
	}
	pair, err := readKeyPair(certPath, keyPath, caKeyPurpose, box)
	if errors.Is(err, errSealed) {
		return nil, fmt.Errorf("the key of the CA in %s cannot be opened: %w", keyPath, err)
	}
	if err != nil {
		return nil, fmt.Errorf("the CA in %s and %s cannot be read; restore both files from a backup (removing both makes a new CA, which every peer must then pin): %w", certPath, keyPath, err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", certPath, err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !cert.IsCA {
		return nil, fmt.Errorf("%s: want a CA certificate with an ECDSA key", certPath)
	}
	return &authority{cert: cert, key: key}, nil
}

// hasCA reports whether the folder has a file of a CA.
func hasCA(dir string) bool {
	for _, path := range CertificateFiles(dir) {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

func createCA(certPath, keyPath string, box Sealer, now time.Time) (*authority, error) {
	ca, err := newCA(now)
	if err != nil {
		return nil, err
	}
	if err := writeKeyPair(certPath, keyPath, ca.cert.Raw, ca.key, caKeyPurpose, box); err != nil {
		return nil, err
	}
	return ca, nil
}

func newCA(now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := newTemplate("Causeway server CA", now, caLifetime)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{cert: cert, key: key}, err
}

func newTemplate(name string, now time.Time, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime),
	}, nil
}

// readKeyPair reads a certificate and its sealed key. It seals a plain-text key in place. If the file of a CA's
// certificate is missing, it writes the certificate that is with the key, and it adds that to the key of an earlier
// version.
func readKeyPair(certPath, keyPath, purpose string, box Sealer) (tls.Certificate, error) {
	stored, err := credential.Own(filepath.Base(keyPath), keyPath)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyPEM := stored
	inClear := bytes.HasPrefix(stored, []byte("-----BEGIN"))
	if !inClear {
		if keyPEM, err = box.Open(stored, purpose); err != nil {
			return tls.Certificate{}, fmt.Errorf("%w: %w", errSealed, err)
		}
	}
	with := certificateIn(keyPEM)
	certPEM, err := credential.Public(filepath.Base(certPath), certPath)
	if errors.Is(err, fs.ErrNotExist) && with != nil {
		certPEM, err = with, WriteFile(certPath, with, 0o644)
	}
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if lacks := purpose == caKeyPurpose && with == nil; err == nil && (inClear || lacks) {
		if lacks {
			keyPEM = append(bytes.TrimRight(keyPEM, "\n"), '\n')
			keyPEM = append(keyPEM, pemBlock(certificateBlock, pair.Certificate[0])...)
		}
		err = writeSealed(keyPath, keyPEM, purpose, box)
	}
	return pair, err
}

// certificateIn returns the certificate beside a key, or nil.
func certificateIn(keyPEM []byte) []byte {
	for {
		var block *pem.Block
		if block, keyPEM = pem.Decode(keyPEM); block == nil {
			return nil
		}
		if block.Type == certificateBlock {
			return pem.EncodeToMemory(block)
		}
	}
}

// writeKeyPair writes the key before the certificate, so that a certificate on disk always has its key, and a CA's key
// its certificate.
func writeKeyPair(certPath, keyPath string, der []byte, key *ecdsa.PrivateKey, purpose string, box Sealer) error {
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	keyPEM, certPEM := pemBlock("PRIVATE KEY", keyDER), pemBlock(certificateBlock, der)
	if purpose == caKeyPurpose {
		keyPEM = append(keyPEM, certPEM...)
	}
	if err := writeSealed(keyPath, keyPEM, purpose, box); err != nil {
		return err
	}
	return WriteFile(certPath, certPEM, 0o644)
}

func writeSealed(path string, plain []byte, purpose string, box Sealer) error {
	sealed, err := box.Seal(plain, purpose)
	if err != nil {
		return err
	}
	return WriteFile(path, sealed, 0o600)
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
