package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs all certificates of a cluster.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
	serial      int64
}

// identity is a certificate: its subject, and for servers their names.
type identity struct {
	file, user, group string
	names             []string
	// kubeconfig is where a kubeconfig for the identity goes, beside the keys; none when empty.
	kubeconfig string
}

// writeKeys makes the cluster's authority, certificates and kubeconfigs.
func (n *Node) writeKeys() error {
	if err := os.MkdirAll(n.keyFile(""), 0o700); err != nil {
		return err
	}
	a, err := newAuthority()
	if err != nil {
		return err
	}
	if err := os.WriteFile(n.keyFile("ca.crt"), a.pem, 0o600); err != nil {
		return err
	}
	if err := writeKey(n.keyFile("ca.key"), a.key); err != nil {
		return err
	}
	tokens, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // signs the tokens of service accounts
	if err != nil {
		return err
	}
	if err := writeKey(n.keyFile("tokens.key"), tokens); err != nil {
		return err
	}
	for _, id := range []identity{
		{file: "apiserver", user: "kube-apiserver", names: []string{"localhost", "kubernetes", "kubernetes.default",
			"kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "127.0.0.1", n.address, n.api}},
		{file: "kubelet-server", user: n.name, names: []string{n.name, n.address, "127.0.0.1"}},
		{file: "admin", user: "admin", group: "system:masters", kubeconfig: "../admin.kubeconfig"},
		{file: "controllers", user: "system:kube-controller-manager", kubeconfig: "controllers.kubeconfig"},
		{file: "scheduler", user: "system:kube-scheduler", kubeconfig: "scheduler.kubeconfig"},
		{file: "proxy", user: "system:kube-proxy", kubeconfig: "proxy.kubeconfig"},
		{file: "kubelet", user: "system:node:" + n.name, group: "system:nodes", kubeconfig: "kubelet.kubeconfig"},
	} {
		if err := n.writeIdentity(a, &id); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) keyFile(name string) string { return filepath.Join(n.Dir, "keys", name) }

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:  x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, err
	}
	return &authority{certificate: certificate, key: key, serial: 1,
		pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})}, nil
}

func (n *Node) writeIdentity(a *authority, id *identity) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	a.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: id.user}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   a.certificate.NotBefore, NotAfter: a.certificate.NotAfter,
	}
	if id.group != "" {
		template.Subject.Organization = []string{id.group}
	}
	for _, name := range id.names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	if err := os.WriteFile(n.keyFile(id.file+".crt"), certificate, 0o600); err != nil {
		return err
	}
	if err := writeKey(n.keyFile(id.file+".key"), key); err != nil || id.kubeconfig == "" {
		return err
	}
	encoded := base64.StdEncoding.EncodeToString
	keyText, err := os.ReadFile(n.keyFile(id.file + ".key"))
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: %[1]s, cluster: {server: "https://%[2]s:6443", certificate-authority-data: %[3]s}}]
users: [{name: %[1]s, user: {client-certificate-data: %[4]s, client-key-data: %[5]s}}]
contexts: [{name: %[1]s, context: {cluster: %[1]s, user: %[1]s}}]
current-context: %[1]s
`, n.name, n.address, encoded(a.pem), encoded(certificate), encoded(keyText))
	return os.WriteFile(n.keyFile(id.kubeconfig), []byte(text), 0o600)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}), 0o600)
}
