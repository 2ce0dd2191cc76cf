package kubernetes

import (
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/causeway-mesh/causeway/server"
)

// secretFile holds the secret part of the webhook's paths.
const secretFile = "webhook-path"

// secretBytes is the size of the secret.
const secretBytes = 24

// Certificate is the webhook's serving certificate, for the names that the API server uses, and the secret part of its
// paths. Both are in one folder.
type Certificate struct {
	dir    string
	box    server.Sealer
	now    func() time.Time
	secret string

	mu     sync.Mutex
	hosts  []string // guarded by mu: what the certificate covers beside loopback
	serves atomic.Pointer[server.Certificate]
}

// OpenCertificate reads the folder, or fills it. box seals the keys.
func OpenCertificate(dir string, box server.Sealer, now func() time.Time) (*Certificate, error) {
	first, err := server.LoadOrCreateCertificate(dir, nil, box, now)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	c := &Certificate{dir: dir, box: box, now: now}
	c.serves.Store(first)
	if c.secret, err = readOrCreateSecret(filepath.Join(dir, secretFile)); err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	return c, nil
}

func readOrCreateSecret(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if known, hexErr := hex.DecodeString(string(raw)); err == nil && hexErr == nil && len(known) == secretBytes {
		return string(raw), nil // an incomplete or foreign file does not count
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	random := make([]byte, secretBytes)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	secret := hex.EncodeToString(random) // segments of a path of a Service are lower case
	return secret, server.WriteFile(path, []byte(secret), 0o600)
}

// knows reports whether a caller knows the secret.
func (c *Certificate) knows(secret string) bool {
	return subtle.ConstantTimeCompare([]byte(secret), []byte(c.secret)) == 1
}

// config returns the TLS configuration, which serves the current certificate at each handshake.
func (c *Certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		config := c.serves.Load().TLSConfig()
		config.NextProtos = []string{"http/1.1"}
		return config, nil
	}}
}

// Expiries returns when the certificate and its CA expire.
func (c *Certificate) Expiries() map[string]time.Time {
	if c == nil {
		return nil
	}
	out := map[string]time.Time{}
	for name, at := range c.serves.Load().Expiries() {
		out["webhook-"+name] = at
	}
	return out
}

// caPEM returns the CA that the API server must trust.
func (c *Certificate) caPEM() []byte { return c.serves.Load().CAPEM }

// cover adds the names to the certificate. The CA stays.
func (c *Certificate) cover(hosts []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range hosts {
		if !slices.Contains(c.hosts, h) {
			c.hosts = append(c.hosts, h)
		}
	}
	next, err := server.LoadOrCreateCertificate(c.dir, c.hosts, c.box, c.now)
	if err == nil {
		c.serves.Store(next)
	}
	return err
}
