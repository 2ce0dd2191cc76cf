package xds

import (
	"crypto/tls"
	"fmt"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// SourceFunc reads what a source of a MeshExternalService refers to: a secret or a file. Its error says why it cannot be had, and
// holds nothing of it.
type SourceFunc func(service *resources.Resource, s *resources.DataSource) ([]byte, error)

// clientOf is the certificate that proxies show to a service, nil where it asks for none. With an error they must not dial it: they
// would be somebody else than the service was told to expect.
func (s *sender) clientOf(b *backend, v *resources.ExternalVerification) (*tlsv3.TlsCertificate, error) {
	if !v.ClientCert.Given() {
		return nil, nil
	}
	certificate, err := s.read(b, v.ClientCert)
	if err != nil {
		return nil, fmt.Errorf("clientCert.%w", err)
	}
	key, err := s.read(b, v.ClientKey)
	if err != nil {
		return nil, fmt.Errorf("clientKey.%w", err)
	}
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		return nil, fmt.Errorf("clientCert and clientKey: want a certificate and its key in PEM") // the parser's error would quote them
	}
	return &tlsv3.TlsCertificate{CertificateChain: inline(certificate), PrivateKey: inline(key)}, nil
}

func (s *sender) read(b *backend, source *resources.DataSource) ([]byte, error) {
	if !source.Refers() {
		text, err := source.Text()
		return []byte(text), err
	}
	if s.sources == nil {
		return nil, fmt.Errorf("secret: there are none here")
	}
	return s.sources(b.service.Resource, source)
}

// workInSourceLocked builds anew what proxies of a mesh have for MeshExternalServices that refer to something, of which some changed.
func (x *Proxies) workInSourceLocked(mesh string) {
	for r := range x.cfg.Store.Snapshot().List(store.Query{Type: resources.TypeMeshExternalService, Mesh: mesh}) {
		if resources.RefersToSources(r) {
			x.workInServiceLocked(&store.Change{Old: r, New: r})
		}
	}
}

// SourcesChanged builds anew what proxies have for the MeshExternalServices of a mesh that refer to secrets or files.
func (x *Proxies) SourcesChanged(mesh string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.workInSourceLocked(mesh)
	x.settleLocked()
}
