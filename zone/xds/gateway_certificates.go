package xds

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/causeway-mesh/causeway/resources"
)

// gatewayCertificates is the prefix of the names of a gateway's serving certificates.
const gatewayCertificates = "gateway_cert:"

// gatewayTLS returns the TLS of a listener that terminates it; nil if it has no certificate, so that it is not served.
// Certificates are secrets of their own, named by their position, so a renewal replaces no listener.
func (s *sender) gatewayTLS(l *gatewayListener, chain string) (*corev3.TransportSocket, error) {
	context := &tlsv3.DownstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{
		TlsParams: &tlsv3.TlsParameters{TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2,
			TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3},
	}}
	if l.http() {
		context.CommonTlsContext.AlpnProtocols = []string{"h2", "http/1.1"}
	}
	for i, c := range l.GetTls().GetCertificates() {
		name := fmt.Sprintf("%s%s:%d", gatewayCertificates, chain, i)
		field := fmt.Sprintf("%s.tls.certificates[%d]", l.field, i)
		secret, err := s.gatewayCertificate(name, field, resources.GatewaySource(c))
		if err != nil {
			return nil, err
		}
		if secret == nil {
			continue
		}
		s.out.certificates = append(s.out.certificates, secret)
		context.CommonTlsContext.TlsCertificateSdsSecretConfigs = append(
			context.CommonTlsContext.TlsCertificateSdsSecretConfigs, &tlsv3.SdsSecretConfig{Name: name, SdsConfig: overADS()})
	}
	if len(context.CommonTlsContext.TlsCertificateSdsSecretConfigs) == 0 {
		return nil, nil
	}
	packed, err := pack(context)
	if err != nil {
		return nil, err
	}
	return &corev3.TransportSocket{Name: "envoy.transport_sockets.tls",
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed}}, nil
}

// gatewayCertificate returns the secret with a certificate and its key; nil if there is none. If the text is not a
// certificate, as while a file is being replaced, the last one stays in use.
func (s *sender) gatewayCertificate(name, field string, source *resources.DataSource) (*resource, error) {
	g := s.target.gateway
	text, err := s.read(g.resource, source)
	if err != nil {
		s.problem(g.kri, fmt.Sprintf("%s: not served: %v", field, err))
		return nil, nil
	}
	certificate, err := resources.ReadServerCertificate(text)
	if err != nil {
		last := s.certificateBefore(name)
		use := "not served"
		if last != nil {
			use = "served with the last one"
		}
		s.problem(g.kri, fmt.Sprintf("%s: %s: the text %v", field, use, err))
		return last, nil
	}
	return newResource(kindSecret, name, &tlsv3.Secret{
		Name: name,
		Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
			CertificateChain: inline(certificate.Chain), PrivateKey: inline(certificate.Key),
		}},
	})
}

// certificateBefore returns the secret that the proxy has under a name; nil for none.
func (s *sender) certificateBefore(name string) *resource {
	s.private = true
	if s.last == nil {
		return nil
	}
	return s.last.certificates.get(name)
}
