package xds

import (
	"crypto/tls"
	"fmt"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// SourceFunc reads the secret or file that a source of a MeshExternalService or a MeshGateway refers to. Its error
// gives the reason, and contains nothing of the content.
type SourceFunc func(of *resources.Resource, s *resources.DataSource) ([]byte, error)

// clientOf returns the certificate that proxies present to a service; nil if the service requests none. On an error
// they must not dial the service, because they would present another identity than the service expects.
func (s *sender) clientOf(b *backend, v *resources.ExternalVerification) (*tlsv3.TlsCertificate, error) {
	if !v.ClientCert.Given() {
		return nil, nil
	}
	certificate, err := s.read(b.service.Resource, v.ClientCert)
	if err != nil {
		return nil, fmt.Errorf("clientCert.%w", err)
	}
	key, err := s.read(b.service.Resource, v.ClientKey)
	if err != nil {
		return nil, fmt.Errorf("clientKey.%w", err)
	}
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		return nil, fmt.Errorf("clientCert and clientKey: want a certificate and its key in PEM") // the parser's error would quote them
	}
	return &tlsv3.TlsCertificate{CertificateChain: inline(certificate), PrivateKey: inline(key)}, nil
}

// read returns the text of a source of a resource.
func (s *sender) read(of *resources.Resource, source *resources.DataSource) ([]byte, error) {
	if !source.Refers() {
		text, err := source.Text()
		return []byte(text), err
	}
	if s.sources == nil {
		return nil, fmt.Errorf("secret: this server has no secrets")
	}
	return s.sources(of, source)
}

// workInSourceLocked rebuilds the resources of a mesh's proxies for MeshExternalServices and MeshGateways with sources,
// after some of those changed.
func (x *Proxies) workInSourceLocked(mesh string) {
	x.certificatesChangedLocked(mesh)
	for r := range x.cfg.Store.Snapshot().List(store.Query{Type: resources.TypeMeshExternalService, Mesh: mesh}) {
		if resources.RefersToSources(r) {
			x.workInServiceLocked(&store.Change{Old: r, New: r})
		}
	}
}

// SourcesChanged rebuilds the resources of proxies for the MeshExternalServices and MeshGateways of a mesh that refer to
// secrets or files.
func (x *Proxies) SourcesChanged(mesh string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.workInSourceLocked(mesh)
	x.settleLocked()
}
