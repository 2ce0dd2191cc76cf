package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"

	"github.com/causeway-mesh/causeway/resources/store/bolt"
	"github.com/causeway-mesh/causeway/secrets"
)

// Authority signs certificates that no zone would, with its own key or with a zone's, stolen from its data directory.
type Authority struct {
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	bundles *x509bundle.Set
	// above are the authorities up to the root; empty for a root.
	above []*x509.Certificate
}

// StealAuthority reads the CA of a mesh from a copy of the zone's store and the zone's key for secrets, like an
// attacker who has both. The clients trust bundles.
func (s *Server) StealAuthority(ctx context.Context, mesh string, bundles *x509bundle.Set) (*Authority, error) {
	loot, err := os.MkdirTemp("", "causeway-stolen-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(loot)
	var out *Authority
	// The server may write while its file is copied. The copy is then torn, and the next attempt takes another one.
	err = Until(ctx, readyTimeout, "a copy of the store of "+s.Name(), func(ctx context.Context) error {
		out, err = s.steal(ctx, loot, mesh)
		return err
	})
	if err != nil {
		return nil, err
	}
	out.bundles = bundles
	return out, nil
}

func (s *Server) steal(ctx context.Context, loot, mesh string) (*Authority, error) {
	files, err := filepath.Glob(filepath.Join(s.DataDir, "*.db"))
	if err != nil || len(files) != 1 {
		return nil, Final(fmt.Errorf("want one store in %s, found %q", s.DataDir, files))
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	copied := filepath.Join(loot, "copy.db")
	if err := os.WriteFile(copied, raw, 0o600); err != nil {
		return nil, err
	}
	opened, err := bolt.Open(ctx, bolt.Config{Path: copied, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	box, err := secrets.OpenBox(secrets.Config{Dir: s.DataDir})
	if err != nil {
		return nil, err
	}
	plain, _, err := secrets.NewKeeper(opened, box).Get(ctx, "identity-ca-"+mesh)
	if err != nil {
		return nil, err
	}
	var kept struct {
		Authorities []struct{ Certificate, Key []byte }
	}
	if err := json.Unmarshal(plain, &kept); err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(kept.Authorities[0].Certificate)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(kept.Authorities[0].Key)
	if err != nil {
		return nil, err
	}
	return &Authority{cert: cert, key: key.(*ecdsa.PrivateKey)}, nil
}

// ForeignAuthority creates a CA with a trust domain's name that no one trusts.
func ForeignAuthority(trustDomain string, bundles *x509bundle.Set) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: trustDomain},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		URIs: []*url.URL{{Scheme: "spiffe", Host: trustDomain}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{cert: cert, key: key, bundles: bundles}, nil
}

// Forge signs a client certificate with any URI SANs, in this order. There may be none.
func (a *Authority) Forge(spiffeIDs ...string) (*Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "forged"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, id := range spiffeIDs {
		u, err := url.Parse(id)
		if err != nil {
			return nil, err
		}
		template.URIs = append(template.URIs, u)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	id := &Identity{Bundles: a.bundles, Certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}
	if len(a.above) > 0 {
		id.Certificate.Certificate = append(id.Certificate.Certificate, a.cert.Raw)
	}
	if len(spiffeIDs) > 0 {
		id.SpiffeID = spiffeIDs[0]
	}
	return id, nil
}
