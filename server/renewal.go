package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/credential"
)

// renewalInterval is how often a running server checks whether to replace its serving certificate.
const renewalInterval = 10 * time.Second

// Run keeps the serving certificate valid until ctx ends: it creates a new one 30 days before the expiry, and reads the
// files again after they are replaced. Connections stay; new handshakes present the new certificate. It logs what
// cannot be read or written, and keeps the current certificate. A nil certificate does nothing. It returns nil.
func (c *Certificate) Run(ctx context.Context, log *slog.Logger) error {
	if c == nil {
		return nil
	}
	return c.run(ctx, log, renewalInterval)
}

func (c *Certificate) run(ctx context.Context, log *slog.Logger, interval time.Duration) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		before := c.leaf.Load()
		err := c.renew()
		if err != nil && err.Error() != said {
			log.Error("cannot renew the serving certificate; the server keeps the current one", "ends",
				before.Leaf.NotAfter, "error", err)
		}
		said = fmt.Sprint(err)
		if after := c.leaf.Load(); after != before {
			log.Info("replaced the serving certificate", "ends", after.Leaf.NotAfter)
		}
	}
}

// renew loads the stored serving certificate, or creates a new one if that cannot serve. It does nothing in a folder
// with another CA.
func (c *Certificate) renew() error {
	caFile := filepath.Join(c.folder.dir, caCertFile)
	stored, err := credential.Public(caCertFile, caFile)
	if err != nil {
		return err
	}
	if !bytes.Equal(bytes.TrimSpace(stored), bytes.TrimSpace(c.CAPEM)) {
		return fmt.Errorf("%s is not the CA that this server started with; restart the server to serve it", caFile)
	}
	leaf, err := c.folder.loadOrCreateLeaf(c.ca)
	if err == nil && !leaf.Leaf.Equal(c.leaf.Load().Leaf) {
		c.leaf.Store(leaf)
	}
	return err
}

// loadOrCreateLeaf returns the stored serving certificate if it can serve, and otherwise creates a new one.
func (f *certificateFolder) loadOrCreateLeaf(ca *authority) (*tls.Certificate, error) {
	certPath, keyPath := filepath.Join(f.dir, tlsCertFile), filepath.Join(f.dir, tlsKeyFile)
	pair, err := readKeyPair(certPath, keyPath, tlsKeyPurpose, f.box)
	if err == nil && f.serves(pair, ca) {
		return withChain(pair, ca)
	}
	hosts := f.hosts
	if err == nil {
		hosts = withEarlier(hosts, pair, ca)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := newTemplate("Causeway server", f.now(), leafLifetime)
	if err != nil {
		return nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if h != "" {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return nil, err
	}
	if err := writeKeyPair(certPath, keyPath, der, key, tlsKeyPurpose, f.box); err != nil {
		return nil, err
	}
	return withChain(tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca)
}

// maxEarlierNames and maxEarlierAddresses bound what a serving certificate inherits. A machine or a pod may get another
// address at each start; it has only a few names.
const (
	maxEarlierNames     = 64
	maxEarlierAddresses = 16
)

// withEarlier adds the names and addresses of the earlier serving certificate, because peers may know the server by no
// other. An authority's certificates only ever name its own server.
func withEarlier(hosts []string, earlier tls.Certificate, ca *authority) []string {
	cert, err := x509.ParseCertificate(earlier.Certificate[0])
	if err != nil || cert.CheckSignatureFrom(ca.cert) != nil {
		return hosts
	}
	out := slices.Clone(hosts)
	add := func(h string) {
		if !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	for _, name := range cert.DNSNames[:min(len(cert.DNSNames), maxEarlierNames)] {
		add(name)
	}
	for _, ip := range cert.IPAddresses[:min(len(cert.IPAddresses), maxEarlierAddresses)] {
		add(ip.String())
	}
	return out
}

// serves reports whether a stored serving certificate can still be used.
func (f *certificateFolder) serves(pair tls.Certificate, ca *authority) bool {
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	now := f.now()
	if err != nil || cert.CheckSignatureFrom(ca.cert) != nil || cert.NotAfter.Sub(now) < renewBefore ||
		now.Before(cert.NotBefore) {
		return false
	}
	for _, h := range f.hosts {
		if h != "" && cert.VerifyHostname(h) != nil {
			return false
		}
	}
	return true
}

// withChain adds the CA to the chain.
func withChain(leaf tls.Certificate, ca *authority) (*tls.Certificate, error) {
	cert, err := x509.ParseCertificate(leaf.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	leaf.Certificate, leaf.Leaf = [][]byte{leaf.Certificate[0], ca.cert.Raw}, cert
	return &leaf, nil
}
