package xds

import (
	"crypto/sha256"
	"fmt"
	"slices"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/causeway-mesh/causeway/resources"
)

// externalCluster is the cluster of a service outside the mesh, and what is to be said of it. Plans share it, so that a
// change of one service builds one cluster, however many services and egresses there are. It is immutable.
type externalCluster struct {
	*resource
	notes
}

// externalKey is everything that it depends on, unless a proxy cannot open one of its files.
type externalKey struct {
	name    string
	service *resources.Resource
	// here is why the endpoints may be this server; empty if they are not.
	here string
	// client identifies the certificate that proxies present, or says why they have none: secrets and files change without
	// the service that names them. It is empty if the service requests none.
	client string
	rules  clusterRules
}

// external returns the cluster of a service outside the mesh.
func (s *sender) external(b *backend) (*externalCluster, error) {
	certificate, id, err := s.presents(b)
	if err != nil {
		return nil, err
	}
	key := externalKey{name: b.name, service: b.service.Resource, client: id, here: s.own.leadsHere(b.external.Endpoints),
		rules: s.clusterRules(b)}
	return sharedCluster(s, &s.target.shared.external, key, func(alone *sender) (*externalCluster, error) {
		return alone.newExternal(b, &key, certificate)
	})
}

// presents returns the certificate that proxies present to a service, and its id in the key.
func (s *sender) presents(b *backend) (certificate *tlsv3.TlsCertificate, id string, err error) {
	tls, err := b.external.ReadTLS()
	if err != nil || tls == nil {
		return nil, "", err
	}
	certificate, problem := s.clientOf(b, &tls.Verification)
	if problem != nil {
		return nil, fmt.Sprintf("tls.verification: %v", problem), nil
	}
	if certificate == nil {
		return nil, "", nil
	}
	chain := sha256.Sum256(certificate.GetCertificateChain().GetInlineBytes())
	secret := sha256.Sum256(certificate.GetPrivateKey().GetInlineBytes())
	return certificate, string(slices.Concat(chain[:], secret[:])), nil
}
