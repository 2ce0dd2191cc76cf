package xds

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// secretsOf names a proxy's secrets. The identity's name contains the Dataplane, so one proxy's name never means
// another's. If a MeshIdentity gives the SPIFFE ID, the name also contains a mark of it. When the SPIFFE ID changes,
// listeners and clusters must change too, because Envoy would keep using connections made under the old one.
func secretsOf(dp resources.Key, who *identity.Assigned) secretNames {
	k := dp.Mesh + "/" + dp.Name
	if dp.Namespace != "" {
		k = dp.Mesh + "/" + dp.Namespace + "/" + dp.Name
	}
	if who.By != nil {
		sum := sha256.Sum256([]byte(who.ID.String()))
		k += "#" + hex.EncodeToString(sum[:4])
	}
	return secretNames{identity: "identity_cert:" + k, trust: trustName(dp.Mesh)}
}

// unnamedSecrets are secrets but for the name of the identity, of which they have the length. It is a key.
type unnamedSecrets struct {
	secretNames
	length int
}

// unnamed returns the secrets without the name of the identity. It fails if that is not text.
func (n secretNames) unnamed() (unnamedSecrets, error) {
	if !utf8.ValidString(n.identity) {
		return unnamedSecrets{}, fmt.Errorf("%w: the name of a secret is not valid text: %q", ErrConfig, n.identity)
	}
	length := len(n.identity)
	n.identity = ""
	return unnamedSecrets{n, length}, nil
}

// trustName returns the name of the secret with a mesh's trust bundles.
func trustName(mesh string) string { return "identity_trust:" + mesh }

// newIdentity returns the secret that holds a proxy's certificate and key.
func newIdentity(name string, svid *identity.SVID) (*resource, error) {
	return newResource(kindSecret, name, &tlsv3.Secret{
		Name: name,
		Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
			CertificateChain: inline(svid.CertificatePEM),
			PrivateKey:       inline(svid.KeyPEM),
		}},
	})
}

// trust holds the trust bundles of a mesh.
type trust struct {
	*resource // the secret that holds it

	validator *corev3.TypedExtensionConfig
}

// newTrust returns the secret that verifies peers: a peer's certificate must come from an authority of the trust domain
// in its SPIFFE ID. It is nil if the mesh trusts nobody yet. Envoy refuses an empty secret, and without one it refuses
// every peer.
func newTrust(name string, bundles *identity.Bundles) (*trust, error) {
	domains := bundles.Domains()
	if len(domains) == 0 {
		return nil, nil
	}
	config := &tlsv3.SPIFFECertValidatorConfig{}
	for _, d := range domains {
		config.TrustDomains = append(config.TrustDomains, &tlsv3.SPIFFECertValidatorConfig_TrustDomain{
			Name: d.Name(), TrustBundle: inline(bundles.PEM(d)),
		})
	}
	packed, err := pack(config)
	if err != nil {
		return nil, err
	}
	validator := &corev3.TypedExtensionConfig{Name: "envoy.tls.cert_validator.spiffe", TypedConfig: packed}
	secret, err := newResource(kindSecret, name, &tlsv3.Secret{
		Name: name,
		Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{CustomValidatorConfig: validator}},
	})
	return &trust{resource: secret, validator: validator}, err
}

func inline(b []byte) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: b}}
}
