package zone_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	secretv3 "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/resources"
)

// spireAgent is a secret discovery service like the one that a SPIRE agent serves on its socket: an SVID by its SPIFFE
// ID, and the bundles as ALL. Like an agent, it supports only the streaming method.
type spireAgent struct {
	secretv3.UnimplementedSecretDiscoveryServiceServer
	t      *testing.T
	domain string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey

	mu    sync.Mutex
	asked map[string]int // guarded by mu
}

// newSpireAgent serves until the test ends, and returns the agent and its socket.
func newSpireAgent(t *testing.T, domain string) (*spireAgent, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		URIs: []*url.URL{{Scheme: "spiffe", Host: domain}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	agent := &spireAgent{t: t, domain: domain, cert: cert, key: key, asked: map[string]int{}}
	socket := filepath.Join(t.TempDir(), "agent.sock")
	listener, err := net.Listen("unix", socket)
	must(t, err)
	server := grpc.NewServer()
	secretv3.RegisterSecretDiscoveryServiceServer(server, agent)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); must(t, <-done) })
	return agent, socket
}

// StreamSecrets answers each new request, but not acknowledgements.
func (a *spireAgent) StreamSecrets(stream secretv3.SecretDiscoveryService_StreamSecretsServer) error {
	for {
		request, err := stream.Recv()
		if err != nil {
			return err
		}
		if request.GetResponseNonce() != "" {
			continue
		}
		response := &discovery.DiscoveryResponse{TypeUrl: request.GetTypeUrl(), VersionInfo: "1", Nonce: "1"}
		for _, name := range request.GetResourceNames() {
			a.mu.Lock()
			a.asked[name]++
			a.mu.Unlock()
			secret, err := a.secret(name)
			if err != nil {
				return err
			}
			packed, err := anypb.New(secret)
			if err != nil {
				return err
			}
			response.Resources = append(response.Resources, packed)
		}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
}

func (a *spireAgent) secret(name string) (*tlsv3.Secret, error) {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	bytes := func(b []byte) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: b}}
	}
	if name == "ALL" {
		validator, err := anypb.New(&tlsv3.SPIFFECertValidatorConfig{TrustDomains: []*tlsv3.SPIFFECertValidatorConfig_TrustDomain{{Name: a.domain, TrustBundle: bytes(ca)}}})
		return &tlsv3.Secret{Name: name,
			Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
				CustomValidatorConfig: &corev3.TypedExtensionConfig{Name: "envoy.tls.cert_validator.spiffe",
					TypedConfig: validator},
			}}}, err
	}
	id, err := url.Parse(name)
	if err != nil || id.Host != a.domain {
		return nil, fmt.Errorf("no registration for %s", name)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Minute),
		NotAfter: time.Now().Add(time.Hour), URIs: []*url.URL{id},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth,
			x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: bytes(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		PrivateKey:       bytes(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})),
	}}}, err
}

// count returns how often a name was requested.
func (a *spireAgent) count(name string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[name]
}

const (
	identityBySpire = `{type: MeshIdentity, mesh: default, name: spire, spec: {selector: {dataplane: {}},
  spiffeID: {trustDomain: spire.zone-1.mesh.local, path: "/app/{{ .Workload }}"}, provider: {type: Spire, spire: {agent: {timeout: 5s}}}}}`
	allowBySpire = `{type: MeshTrafficPermission, mesh: default, name: by-spire, spec: {rules: [{default: {allow: [
  {spiffeId: {type: Exact, value: "spiffe://spire.zone-1.mesh.local/app/caller"}}]}}]}}`
)

// TestIdentitiesBySpire: two proxies with identities of the zone switch to the SPIRE agent's socket when a MeshIdentity
// selects it, with the SPIFFE IDs that it defines. Permissions apply to those IDs, and clients accept no other identity
// of a service. Without the MeshIdentity, the zone signs again.
func TestIdentitiesBySpire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent, socket := newSpireAgent(t, "spire.zone-1.mesh.local")
	w.spire = socket
	w.service("backend")
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	answers := func(what string, want int) {
		t.Helper()
		eventually(t, what, func() bool { code, _ := plain(ports[0], "/"); return code == want })
	}
	w.apply(fmt.Sprintf(allowCaller, "zone-1"))
	answers("allowed by the zone's identity", http.StatusOK)

	w.apply(identityBySpire)
	answers("denied, since nobody allows the SPIRE identity", http.StatusForbidden)
	w.apply(allowBySpire)
	answers("allowed by the SPIRE identity", http.StatusOK)
	for _, name := range []string{"spiffe://spire.zone-1.mesh.local/app/backend",
		"spiffe://spire.zone-1.mesh.local/app/caller", "ALL"} {
		if agent.count(name) == 0 {
			t.Errorf("nobody asked the agent for %s", name)
		}
	}
	if issued := w.proxies.IssuedBy("default"); len(issued) != 0 {
		t.Errorf("the zone has signed: %v", issued)
	}
	if _, err := w.authorities.Issue(w.resource(`{type: Dataplane, mesh: default, name: x, networking: {address: 127.0.0.1}}`)); err == nil || !strings.Contains(err.Error(), "SPIRE") {
		t.Errorf("the zone signs for it: %v", err)
	}

	// The service must have another identity: then clients refuse the backend, even with a certificate of the same
	// agent.
	w.apply(strings.Replace(serviceIdentity, "%s", "spiffe://spire.zone-1.mesh.local/app/somebody", 1))
	answers("refused, since it is not the service", http.StatusServiceUnavailable)
	w.apply(strings.Replace(serviceIdentity, "%s", "spiffe://spire.zone-1.mesh.local/app/backend", 1))
	answers("allowed again", http.StatusOK)

	w.remove(resources.TypeMeshIdentity, "spire")
	w.apply(strings.Replace(serviceIdentity, "%s", "spiffe://default.zone-1.mesh.local/workload/backend", 1))
	answers("allowed by the zone's identity once more", http.StatusOK)
	e.refusedNothing()
}

const serviceIdentity = `{type: MeshService, mesh: default, name: backend, spec: {selector: {dataplaneLabels: {matchLabels: {app: backend}}}, ports: [
  {name: http, port: 80, targetPort: main, appProtocol: http}], identities: [{type: SpiffeID, value: "%s"}]}}`
