package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/zone"
)

// startForUsers runs the zone zone-1 with an HTTP API off loopback, with TLS, until the script ends. It sets its
// address and CA. The first admin's token is in the file TOKEN. users.pem signs the known users: olga.pem, of the group
// payments-team. stranger.pem has a certificate of an unknown issuer.
func startForUsers(env *testscript.Env) error {
	users, err := newIssuer("users")
	if err != nil {
		return err
	}
	strangers, err := newIssuer("strangers")
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(env.WorkDir, "users.pem"), "CERTIFICATE", users.cert.Raw); err != nil {
		return err
	}
	if err := users.issue(env.WorkDir, "olga", "payments-team"); err != nil {
		return err
	}
	if err := strangers.issue(env.WorkDir, "stranger", access.AdminGroup); err != nil {
		return err
	}
	config := zone.Config{APIAddress: "0.0.0.0:0", DiagnosticsAddress: "0.0.0.0:0",
		TLSNames: []string{"zone-1-api.causeway.svc", "*.zone-1-headless.causeway.svc"}}
	config.Access.ClientCAFile = filepath.Join(env.WorkDir, "users.pem")
	if config.DataDir, err = serverDir(env); err != nil {
		return err
	}
	ready, err := startZone(env, config)
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(ready["api"])
	if err != nil {
		return err
	}
	env.Setenv(addressEnv, "https://127.0.0.1:"+port)
	_, port, err = net.SplitHostPort(ready["diagnostics"])
	env.Setenv("DIAGNOSTICS_PORT", port)
	env.Setenv(caEnv, filepath.Join(config.DataDir, "tls", "ca.crt"))
	env.Setenv("TOKEN", filepath.Join(config.DataDir, "admin.token"))
	env.Setenv("ADMIN_CONTEXT", filepath.Join(config.DataDir, "context.yaml"))
	return err
}

// issuer signs the certificates of users.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newIssuer(name string) (*issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &issuer{cert, key}, err
}

// issue writes NAME.pem and NAME.key for a user of a group.
func (i *issuer) issue(dir, name, group string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(0x5a0f), Subject: pkix.Name{CommonName: name, Organization: []string{group}},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, i.cert, key.Public(), i.key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, name+".key"), "PRIVATE KEY", secret); err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, name+".pem"), "CERTIFICATE", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
