package resources

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// Limits of a MeshGateway and of the routes for it. Each listener with TLS is a filter chain, and each hostname of a
// route a virtual host, of every proxy of the gateway.
const (
	MaxGatewaySelectors    = 16
	MaxGatewayListeners    = 64
	MaxGatewayCertificates = 8
	MaxGatewayTags         = 32
	MaxRouteHostnames      = 64
	// MaxCertificateBytes bounds a certificate of a gateway, with its chain and its key.
	MaxCertificateBytes = 64 << 10
)

// AnyHost is the hostname that matches all hosts. An absent hostname means the same.
const AnyHost = "*"

// IsHostPattern reports whether a listener or a route may have a hostname: a DNS name in lower case, one whose first
// label is a `*`, or AnyHost.
func IsHostPattern(s string) bool {
	if s == AnyHost {
		return true
	}
	name := strings.TrimPrefix(s, "*.")
	return isSubdomain(name) && !looksNumeric(name)
}

// HostCovers reports whether pattern matches every host that other matches. A wildcard stands for one or more labels.
func HostCovers(pattern, other string) bool {
	suffix, wild := strings.CutPrefix(pattern, "*")
	switch {
	case pattern == AnyHost || pattern == other:
		return true
	case !wild || other == AnyHost:
		return false
	}
	return strings.HasSuffix(strings.TrimPrefix(other, "*"), suffix) && len(other) > len(pattern)-1
}

// NarrowerHost returns the one of two hostnames that both match; ok is false if they have no host in common.
func NarrowerHost(a, b string) (host string, ok bool) {
	switch {
	case HostCovers(a, b):
		return b, true
	case HostCovers(b, a):
		return a, true
	}
	return "", false
}

// CompareHosts orders hostnames from the most specific: an exact one before a wildcard, a longer before a shorter,
// AnyHost last. Equally specific ones are in alphabetical order.
func CompareHosts(a, b string) int {
	rank := func(s string) int {
		switch {
		case s == AnyHost:
			return 0
		case strings.HasPrefix(s, "*"):
			return len(s)
		}
		return MaxNameBytes + len(s)
	}
	if d := rank(b) - rank(a); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// GatewaySource returns the source of a certificate in a MeshGateway.
func GatewaySource(c *meshpb.MeshGateway_TLS_Certificate) *DataSource {
	switch t := c.GetType().(type) {
	case *meshpb.MeshGateway_TLS_Certificate_Secret:
		return &DataSource{Secret: t.Secret}
	case *meshpb.MeshGateway_TLS_Certificate_File:
		return &DataSource{File: &FileSource{Path: t.File}}
	case *meshpb.MeshGateway_TLS_Certificate_Inline:
		return &DataSource{Inline: base64.StdEncoding.EncodeToString(t.Inline.GetValue())}
	case *meshpb.MeshGateway_TLS_Certificate_InlineString:
		return &DataSource{InlineString: t.InlineString}
	}
	return &DataSource{}
}

// gatewaySources returns the sources of a MeshGateway's certificates that name secrets or files.
func gatewaySources(r *Resource) (out []*DataSource) {
	spec, err := SpecAs[meshpb.MeshGateway](r)
	if err != nil {
		return nil
	}
	for _, l := range spec.GetConf().GetListeners() {
		for _, c := range l.GetTls().GetCertificates() {
			if s := GatewaySource(c); s.Refers() {
				out = append(out, s)
			}
		}
	}
	return out
}

// ServerCertificate is a certificate with which a gateway answers.
type ServerCertificate struct {
	// Chain and Key are PEM.
	Chain, Key []byte
	Leaf       *x509.Certificate
}

// ReadServerCertificate parses PEM text with a certificate, the rest of its chain, and its key, in any order. It
// refuses what Envoy refuses, because an Envoy without its certificate does not listen. Errors never quote the text.
func ReadServerCertificate(text []byte) (*ServerCertificate, error) {
	if len(text) > MaxCertificateBytes {
		return nil, fmt.Errorf("is %d bytes long, want at most %d", len(text), MaxCertificateBytes)
	}
	out := &ServerCertificate{}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "CERTIFICATE":
			if _, err := ParseCertificate(block.Bytes); err != nil {
				return nil, errors.New("has a certificate that cannot be read")
			}
			block.Headers = nil
			out.Chain = append(out.Chain, pem.EncodeToMemory(block)...)
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			if len(out.Key) > 0 {
				return nil, errors.New("has two private keys, want one")
			}
			if strings.HasPrefix(block.Type, "ENCRYPTED") || len(block.Headers) > 0 {
				return nil, errors.New("has an encrypted private key, want one that is not")
			}
			out.Key = pem.EncodeToMemory(block)
		}
	}
	switch {
	case len(out.Chain) == 0:
		return nil, errors.New("has no certificate in PEM")
	case len(out.Key) == 0:
		return nil, errors.New("has no private key in PEM: want the certificate, its chain and its key in one text")
	}
	pair, err := tls.X509KeyPair(out.Chain, out.Key)
	if err != nil {
		return nil, errors.New("want a certificate first and the private key of it")
	}
	out.Leaf = pair.Leaf
	if out.Leaf == nil {
		if out.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, errors.New("has a certificate that cannot be read")
		}
	}
	return out, keyProblem(out.Leaf.PublicKey)
}

// keyProblem refuses keys that Envoy rejects.
func keyProblem(key any) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < 2048 {
			return fmt.Errorf("has an RSA key of %d bits, want at least 2048", bits)
		}
		return nil
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P224() {
			return errors.New("has an ECDSA key of the curve P-224, want P-256, P-384 or P-521")
		}
		return nil
	}
	return fmt.Errorf("has a key of a kind that proxies do not take, want RSA or ECDSA")
}

// Problem returns the reason why clients refuse the certificate on a listener with the hostname, or "".
func (c *ServerCertificate) Problem(hostname string, now time.Time) string {
	switch {
	case now.After(c.Leaf.NotAfter):
		return "expired at " + c.Leaf.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(c.Leaf.NotBefore):
		return "is valid from " + c.Leaf.NotBefore.UTC().Format(time.RFC3339)
	case hostname == AnyHost:
		return ""
	}
	for _, name := range c.Leaf.DNSNames {
		if name = strings.ToLower(name); name == hostname || strings.HasPrefix(name, "*.") && covers(name, hostname) {
			return ""
		}
	}
	return "is not for " + hostname
}

// covers reports whether the wildcard of a certificate, which stands for one label, covers a hostname.
func covers(wildcard, hostname string) bool {
	_, parent, _ := strings.Cut(hostname, ".")
	return parent == strings.TrimPrefix(wildcard, "*.")
}
