package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// Identity is a client's certificate and trust.
type Identity struct {
	// SpiffeID is the certificate's SPIFFE ID, or the first of several.
	SpiffeID    string
	Certificate tls.Certificate
	// Bundles are the CAs of the mesh's trust domains.
	Bundles *x509bundle.Set
}

// SVID gets a certificate for a Dataplane from its zone, as `causewayctl svid` does.
func (s *Server) SVID(ctx context.Context, mesh, namespace, dataplane string) (*Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, err
	}
	path := fmt.Sprintf("/meshes/%s/dataplanes/%s/_svid", mesh, dataplane)
	if namespace != "" {
		path += "?namespace=" + url.QueryEscape(namespace)
	}
	var signed struct {
		SpiffeID    string            `json:"spiffeId"`
		Certificate string            `json:"certificate"`
		Bundles     map[string]string `json:"bundles"`
	}
	request := map[string]string{"csr": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}))}
	if err := s.API.Do(ctx, "POST", path, request, &signed); err != nil {
		return nil, err
	}
	chain, err := certificates([]byte(signed.Certificate))
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", dataplane, err)
	}
	id := &Identity{SpiffeID: signed.SpiffeID, Certificate: tls.Certificate{PrivateKey: key}, Bundles: x509bundle.NewSet()}
	for _, cert := range chain {
		id.Certificate.Certificate = append(id.Certificate.Certificate, cert.Raw)
	}
	for name, text := range signed.Bundles {
		domain, err := spiffeid.TrustDomainFromString(name)
		if err != nil {
			return nil, err
		}
		bundle, err := x509bundle.Parse(domain, []byte(text))
		if err != nil {
			return nil, err
		}
		id.Bundles.Add(bundle)
	}
	return id, nil
}

// WaitTrust gets certificates for a Dataplane until its bundles cover the trust domains of all zones, that is, until
// the zones' MeshTrusts are exchanged.
func (s *Server) WaitTrust(ctx context.Context, mesh, namespace, dataplane string, zones ...string) (*Identity, error) {
	var id *Identity
	err := Until(ctx, readyTimeout, s.Name()+" to trust the zones", func(ctx context.Context) error {
		var err error
		if id, err = s.SVID(ctx, mesh, namespace, dataplane); err != nil {
			return err
		}
		for _, zone := range zones {
			domain, err := spiffeid.TrustDomainFromString(TrustDomain(mesh, zone))
			if err != nil {
				return Final(err)
			}
			if !id.Bundles.Has(domain) {
				return fmt.Errorf("no CA of %s among the bundles yet", domain)
			}
		}
		return nil
	})
	return id, err
}

// TrustDomain returns the trust domain of a zone's identities.
func TrustDomain(mesh, zone string) string { return mesh + "." + zone + ".mesh.local" }

func certificates(text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for {
		var block *pem.Block
		block, text = pem.Decode(text)
		if block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no certificate in the PEM text")
	}
	return all, nil
}
