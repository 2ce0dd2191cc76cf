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
	problems []string
	// files are the files that its health checks write.
	files []string
}

// externalKey is everything that it depends on, unless a proxy cannot open one of its files.
type externalKey struct {
	name    string
	service *resources.Resource
	asked   bool
	// here is why the endpoints may be this server; empty if they are not.
	here string
	// client identifies the certificate that proxies present, or says why they have none: secrets and files change without
	// the service that names them. It is empty if the service requests none.
	client string
	// These identify the rules for the service.
	timeouts, breakers, balancing, health string
}

// external returns the cluster of a service outside the mesh.
func (s *sender) external(b *backend) (*externalCluster, error) {
	certificate, id, err := s.presents(b)
	if err != nil {
		return nil, err
	}
	of := b.key()
	key := externalKey{name: b.name, service: b.service.Resource, asked: s.asked, client: id,
		here: s.own.leadsHere(b.external.Endpoints), timeouts: s.timeouts.For(of).ID(), breakers: s.breakers.For(of).ID(),
		balancing: s.balancing.For(of).ID(), health: s.health.For(of).ID()}
	build := func(files *logFiles) (*externalCluster, error) {
		return (&sender{target: &target{logFiles: files}, asked: s.asked, timeouts: s.timeouts, breakers: s.breakers,
			balancing: s.balancing, health: s.health}).newExternal(b, &key, certificate)
	}
	made, err := s.target.shared.external.get(key, func() (*externalCluster, error) { return build(&logFiles{}) })
	files := s.target.logFiles
	if err == nil && slices.ContainsFunc(made.files, func(file string) bool { return files.use(file) != "" }) {
		made, err = build(files)
	}
	if err != nil {
		return nil, err
	}
	s.out.problems = append(s.out.problems, made.problems...)
	return made, nil
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
