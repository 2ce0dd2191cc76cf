package apiserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// serviceAccountDir is where a pod finds the credential of its service account.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// access is the address of the API server, with the credential.
type access struct {
	server string
	tls    *tls.Config
	// tokenFile is read again from time to time: service account tokens are short-lived. token is a fixed one.
	tokenFile, token string
	// caFile is read again for each connection: a cluster's authority may be replaced. Empty for a fixed one.
	caFile string
}

// inCluster returns the access of the pod that this process runs in.
func inCluster() (*access, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("not in a Kubernetes cluster: KUBERNETES_SERVICE_HOST is not set; outside a cluster, use --kubernetes-kubeconfig")
	}
	caFile := filepath.Join(serviceAccountDir, "ca.crt")
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("service account: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("service account: ca.crt has no certificate")
	}
	return &access{server: "https://" + net.JoinHostPort(host, port),
		tls: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, tokenFile: filepath.Join(serviceAccountDir, "token"), caFile: caFile}, nil
}

// kubeconfig is the part of a kubeconfig file that is needed here.
type kubeconfig struct {
	Current  string `yaml:"current-context"`
	Contexts []struct {
		Name    string
		Context struct{ Cluster, User string }
	}
	Clusters []struct {
		Name    string
		Cluster struct {
			Server   string
			CA       string `yaml:"certificate-authority"`
			CAData   string `yaml:"certificate-authority-data"`
			Insecure bool   `yaml:"insecure-skip-tls-verify"`
			Name     string `yaml:"tls-server-name"`
		}
	}
	Users []struct {
		Name string
		User kubeconfigUser
	}
}

type kubeconfigUser struct {
	Cert      string `yaml:"client-certificate"`
	CertData  string `yaml:"client-certificate-data"`
	Key       string `yaml:"client-key"`
	KeyData   string `yaml:"client-key-data"`
	Token     string
	TokenFile string         `yaml:"tokenFile"`
	Exec      map[string]any `yaml:"exec"`
}

// fromKubeconfig returns the access of the current context of a file.
func fromKubeconfig(path string) (*access, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	var k kubeconfig
	if err := yaml.Unmarshal(raw, &k); err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	a, err := k.access(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return a, nil
}

func (k *kubeconfig) access(dir string) (*access, error) {
	cluster, user := "", ""
	for _, c := range k.Contexts {
		if c.Name == k.Current {
			cluster, user = c.Context.Cluster, c.Context.User
		}
	}
	if cluster == "" {
		return nil, fmt.Errorf("context %q of current-context not found", k.Current)
	}
	a := &access{tls: &tls.Config{MinVersion: tls.VersionTLS12}}
	for _, c := range k.Clusters {
		if c.Name != cluster {
			continue
		}
		if c.Cluster.Insecure {
			return nil, errors.New("insecure-skip-tls-verify: an impostor could control the mesh: set certificate-authority instead")
		}
		a.server, a.tls.ServerName = c.Cluster.Server, c.Cluster.Name
		ca, err := fileOrData(dir, c.Cluster.CA, c.Cluster.CAData)
		if err != nil {
			return nil, err
		}
		if c.Cluster.CAData == "" && c.Cluster.CA != "" {
			a.caFile = within(dir, c.Cluster.CA)
		}
		if len(ca) > 0 {
			if a.tls.RootCAs = x509.NewCertPool(); !a.tls.RootCAs.AppendCertsFromPEM(ca) {
				return nil, errors.New("certificate-authority has no certificate")
			}
		}
	}
	if a.server == "" {
		return nil, fmt.Errorf("cluster %q has no server", cluster)
	}
	if u, err := url.Parse(a.server); err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("server of cluster %q: want https://HOST:PORT, got %q: others could read the credential", cluster, a.server)
	}
	for _, u := range k.Users {
		if u.Name == user {
			return a, a.as(&u.User, dir)
		}
	}
	return nil, fmt.Errorf("user %q of the context not found", user)
}

// as uses the user's credential.
func (a *access) as(u *kubeconfigUser, dir string) error {
	if len(u.Exec) > 0 {
		return errors.New("users with exec are not supported: use a client certificate, a token or tokenFile")
	}
	a.token, a.tokenFile = u.Token, u.TokenFile
	if a.tokenFile != "" && !filepath.IsAbs(a.tokenFile) {
		a.tokenFile = filepath.Join(dir, a.tokenFile)
	}
	cert, err := fileOrData(dir, u.Cert, u.CertData)
	if err != nil {
		return err
	}
	if len(cert) == 0 {
		if a.token == "" && a.tokenFile == "" {
			return errors.New("the user has no credential that is supported: use a client certificate, a token or tokenFile")
		}
		return nil
	}
	key, err := fileOrData(dir, u.Key, u.KeyData)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("client certificate: %w", err)
	}
	a.tls.Certificates = []tls.Certificate{pair}
	return nil
}

func fileOrData(dir, file, data string) ([]byte, error) {
	if data != "" {
		return base64.StdEncoding.DecodeString(data)
	}
	if file == "" {
		return nil, nil
	}
	return os.ReadFile(within(dir, file))
}

// within resolves a file that a kubeconfig in dir names.
func within(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// dial connects to the API server, and trusts the authority that its file contains now.
func (a *access) dial(ctx context.Context, network, address string) (net.Conn, error) {
	config := a.tls.Clone()
	config.NextProtos = []string{"h2", "http/1.1"}
	if a.caFile != "" {
		ca, err := os.ReadFile(a.caFile)
		if err != nil {
			return nil, fmt.Errorf("authority of the API server: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("authority of the API server: %s has no certificate", a.caFile)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
}

// PrefersIPv6 reports whether this process is in a pod of a cluster whose first addresses are of IPv6: those of the API
// server's Service are of the family that pods have as theirs.
func PrefersIPv6() bool {
	ip, err := netip.ParseAddr(os.Getenv("KUBERNETES_SERVICE_HOST"))
	return err == nil && ip.Is6() && !ip.Is4In6()
}
