package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/causeway-mesh/causeway/kubernetes/portforward"
)

// completionTime bounds what a completion asks kubectl.
const completionTime = 5 * time.Second

// kubeFlags say by which Kubernetes cluster the server is reached.
type kubeFlags struct {
	context, kubeconfig string

	flags     *pflag.FlagSet
	forwarder *portforward.Forwarder
}

func (k *kubeFlags) add(f *pflag.FlagSet) {
	k.flags = f
	f.StringVar(&k.context, "kube-context", "",
		"`name` of the context of a kubeconfig: reach --address, a Service of that cluster, by kubectl port-forward")
	f.StringVar(&k.kubeconfig, "kubeconfig", "", "kubeconfig `file` of --kube-context; kubectl's own choice when empty")
}

// dialer returns what connects to the server, or nil if it is reached directly.
func (k *kubeFlags) dialer(c *cli) (func(ctx context.Context, network, address string) (net.Conn, error), error) {
	given := k.flags != nil && (k.flags.Changed("kube-context") || k.flags.Changed("kubeconfig"))
	switch u, err := url.Parse(c.address); {
	case k.context == "" && !given:
		return nil, nil
	case k.context == "":
		return nil, usagef("--kube-context is empty: give it the name of a context of your kubeconfig; kubectl config get-contexts lists them")
	case err != nil || u.Scheme != "https" || u.Host == "":
		return nil, usagef("--address %s: with --kube-context, want https://SERVICE.NAMESPACE.svc:PORT%s", c.address, k.addressHint())
	default:
		if err := portforward.Check(net.JoinHostPort(u.Hostname(), portOf(u))); err != nil {
			return nil, usagef("--address: %w%s", err, k.addressHint())
		}
	}
	if k.forwarder == nil {
		// The caller's own limit comes later, so that the reason is known.
		k.forwarder = portforward.New(portforward.Config{Context: k.context, Kubeconfig: k.kubeconfig, Patience: c.timeout * 4 / 5, Notices: c.errOut})
	}
	return k.forwarder.DialContext, nil
}

// portOf returns the port of an https URL.
func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return "443"
}

// addressHint says how to find the address, to those that name a cluster.
func (k *kubeFlags) addressHint() string {
	if k.context == "" {
		return ""
	}
	return ": kubectl --context " + k.context + " get services -A -l causeway/service=api lists the Services of Causeway servers"
}

// diagnosticsHint says what the port of the diagnostics is in a cluster.
func (k *kubeFlags) diagnosticsHint() string {
	if k.context == "" {
		return ""
	}
	return ", in the cluster https://POD.SERVICE.NAMESPACE.svc:5680, where SERVICE is the headless one"
}

// portDiagnostics is the port of the diagnostics in the charts.
const portDiagnostics = "5680"

// diagnostics returns the URL of the diagnostics of the pod that the given URL leads to, or --address if it is empty: of
// several replicas, the one that leads.
func (k *kubeFlags) diagnostics(ctx context.Context, c *cli, flag string) (string, error) {
	if _, err := k.dialer(c); err != nil {
		return "", err
	}
	address, port := c.address, portDiagnostics
	if flag != "" {
		address = flag
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", usagef("--diagnostics: %w", err)
	}
	if flag != "" {
		port = portOf(u)
	}
	host, err := k.forwarder.Pod(ctx, net.JoinHostPort(u.Hostname(), portOf(u)))
	if err != nil {
		return "", err
	}
	u = &url.URL{Scheme: u.Scheme, Host: net.JoinHostPort(host, port)}
	return u.String(), nil
}

// dial connects to HOST:PORT, in the cluster if there is one.
func (k *kubeFlags) dial(ctx context.Context, address string) (net.Conn, error) {
	if k.forwarder != nil {
		return k.forwarder.DialContext(ctx, "tcp", address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// close ends what was started.
func (k *kubeFlags) close() {
	if k.forwarder != nil {
		k.forwarder.Close()
	}
}

// about adds to the end of a connection why kubectl ended it.
func (k *kubeFlags) about(err error) error {
	if k.forwarder == nil || err == nil || errors.As(err, new(*portforward.Error)) {
		return err
	}
	for _, ends := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		if !errors.Is(err, ends) {
			continue
		}
		if lost := k.forwarder.Lost(); lost != nil {
			return &lostError{lost, err}
		}
	}
	return err
}

// lostError is the end of a connection, with its reason.
type lostError struct{ reason, end error }

func (e *lostError) Error() string   { return e.reason.Error() }
func (e *lostError) Unwrap() []error { return []error{e.reason, e.end} }

// complete completes the contexts of the kubeconfig.
func (k *kubeFlags) complete(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	args := []string{"config", "get-contexts", "--output=name"}
	if k.kubeconfig != "" {
		args = append(args, "--kubeconfig="+k.kubeconfig)
	}
	out, err := exec.CommandContext(ctx, "kubectl", args...).Output() //nolint:gosec // the caller's own file
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return strings.Fields(string(out)), cobra.ShellCompDirectiveNoFileComp
}

// learnCA returns the SHA-256 of the CA that the server of the flags presents, or "" if this machine trusts its
// certificate. The way there is authenticated: by the kubeconfig, the API server and the kubelet. Whoever controls those
// controls the server.
func (c *cli) learnCA(ctx context.Context) (string, error) {
	u, err := url.Parse(c.address)
	if err != nil {
		return "", usagef("--address: %w", err)
	}
	if _, err := c.kube.dialer(c); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	waiting := startProgress(c.errOut, "asking "+c.address+" for its CA")
	pin := ""
	conn, err := c.kube.dial(ctx, net.JoinHostPort(u.Hostname(), portOf(u)))
	if err == nil {
		defer conn.Close()
		config := &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} //nolint:gosec // nothing is sent, and VerifyConnection decides
		config.VerifyConnection = func(state tls.ConnectionState) (err error) {
			pin, err = pinOf(state)
			return err
		}
		err = tls.Client(conn, config).HandshakeContext(ctx)
	}
	waiting.stop()
	if err != nil {
		return "", failed(explainTransport(c.address, c.kube.about(&url.Error{Op: "Get", URL: c.address, Err: err})))
	}
	if pin != "" {
		fmt.Fprintf(c.errOut, "the context trusts the CA that %s presents, SHA-256 %s\n", c.address, pin)
	}
	return pin, nil
}

// pinOf returns the SHA-256 of the CA in the chain of a server, by which its certificate is valid for its name.
func pinOf(state tls.ConnectionState) (string, error) {
	options := x509.VerifyOptions{DNSName: state.ServerName, Intermediates: x509.NewCertPool()}
	for _, cert := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(cert)
	}
	leaf := state.PeerCertificates[0]
	_, err := leaf.Verify(options)
	if err == nil {
		return "", nil
	}
	for _, cert := range state.PeerCertificates[1:] {
		if !cert.IsCA || cert.CheckSignatureFrom(cert) != nil {
			continue
		}
		options.Roots = x509.NewCertPool()
		options.Roots.AddCert(cert)
		if _, err = leaf.Verify(options); err == nil {
			sum := sha256.Sum256(cert.Raw)
			return hex.EncodeToString(sum[:]), nil
		}
	}
	return "", fmt.Errorf("the server presents no CA by which its certificate is valid: %w; give the CA by --ca FILE", err)
}
