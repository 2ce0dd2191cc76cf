package xds

import (
	"crypto/sha256"
	"encoding/hex"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// secretsOf names a proxy's secrets. The identity's name holds the Dataplane, so that one proxy's never means another's, and a mark of the
// SPIFFE ID where a MeshIdentity gives it: when that is another one, listeners and clusters have to be too, as Envoy would go on with
// connections that were made as the old one.
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

// trustName names the secret that holds whom a mesh believes.
func trustName(mesh string) string { return "identity_trust:" + mesh }

// newIdentity is the secret that holds a proxy's certificate and key.
func newIdentity(name string, svid *identity.SVID) (*resource, error) {
	return newResource(kindSecret, name, &tlsv3.Secret{
		Name: name,
		Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
			CertificateChain: inline(svid.CertificatePEM),
			PrivateKey:       inline(svid.KeyPEM),
		}},
	})
}

// trust is whom a mesh believes.
type trust struct {
	*resource // the secret that holds it

	validator *corev3.TypedExtensionConfig
}

// newTrust is the secret by which peers are verified: a peer's certificate must come from an authority of the trust domain
// that its SPIFFE ID names. It is nil where nobody is trusted yet: Envoy refuses an empty one, and without one it
// refuses everybody.
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
