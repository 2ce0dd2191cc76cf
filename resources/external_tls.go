package resources

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ExternalTLS is how a MeshExternalService is reached by TLS. Source: kuma-wire, section 4.
type ExternalTLS struct {
	Enabled            bool                 `json:"enabled"`
	Version            TLSVersions          `json:"version"`
	AllowRenegotiation bool                 `json:"allowRenegotiation"`
	Verification       ExternalVerification `json:"verification"`
}

// TLSVersions are TLSAuto, TLS10 to TLS13; empty means TLSAuto.
type TLSVersions struct {
	Min string `json:"min"`
	Max string `json:"max"`
}

// ExternalVerification says whom to believe, and who the proxy is.
type ExternalVerification struct {
	// Mode is one of the Verify constants; empty means VerifySecured.
	Mode            string        `json:"mode"`
	ServerName      string        `json:"serverName"`
	SubjectAltNames []ExternalSAN `json:"subjectAltNames"`
	CACert          *DataSource   `json:"caCert"`
	ClientCert      *DataSource   `json:"clientCert"`
	ClientKey       *DataSource   `json:"clientKey"`
}

// ExternalSAN is a name that the server's certificate may have; Type is Exact, which is the default, or Prefix.
type ExternalSAN struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// Modes of verification.
const (
	VerifySecured = "Secured"
	VerifySkipSAN = "SkipSAN"
	VerifySkipCA  = "SkipCA"
	VerifySkipAll = "SkipAll"
)

// DataSource is text in the resource itself, or a secret, which no server has here.
type DataSource struct {
	Secret       string `json:"secret"`
	Inline       string `json:"inline"` // base64
	InlineString string `json:"inlineString"`
}

// Text returns what is in the source; that of a nil source is empty.
func (s *DataSource) Text() (string, error) {
	switch {
	case s == nil:
		return "", nil
	case s.Secret != "":
		return "", fmt.Errorf("secret: there are no secrets here, give inline or inlineString")
	case s.Inline != "":
		raw, err := base64.StdEncoding.DecodeString(s.Inline)
		if err != nil {
			return "", fmt.Errorf("inline: %w", err)
		}
		return string(raw), nil
	}
	return s.InlineString, nil
}

// ChecksAuthority reports whether the server's certificate must be of one of the authorities.
func (v *ExternalVerification) ChecksAuthority() bool { return v.Mode != VerifySkipAll }

// ChecksName reports whether the server's certificate must have a certain name.
func (v *ExternalVerification) ChecksName() bool {
	return v.Mode != VerifySkipSAN && v.Mode != VerifySkipAll
}

// ReadTLS returns how the service is reached by TLS, nil where it is reached in the clear. The error, which names the field, says why
// no proxy can: then nobody sends to the service, rather than less safely than was asked for.
func (s *MeshExternalService) ReadTLS() (*ExternalTLS, error) {
	if len(s.TLS) == 0 {
		return nil, nil
	}
	out := &ExternalTLS{}
	dec := json.NewDecoder(strings.NewReader(string(s.TLS)))
	dec.DisallowUnknownFields() // what is not understood may ask for more
	if err := dec.Decode(out); err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	if !out.Enabled {
		return nil, nil
	}
	return out, out.check()
}

func (t *ExternalTLS) check() error {
	v := &t.Verification
	if !slices.Contains([]string{"", VerifySecured, VerifySkipSAN, VerifySkipCA, VerifySkipAll}, v.Mode) {
		return fmt.Errorf("tls.verification.mode: want %s, %s, %s or %s, got %q", VerifySecured, VerifySkipSAN, VerifySkipCA, VerifySkipAll, v.Mode)
	}
	var texts [3]string
	for i, source := range []*DataSource{v.CACert, v.ClientCert, v.ClientKey} {
		text, err := source.Text()
		if err != nil {
			return fmt.Errorf("tls.verification.%s.%w", [...]string{"caCert", "clientCert", "clientKey"}[i], err)
		}
		texts[i] = text
	}
	switch v.Mode {
	case VerifySkipAll:
	case VerifySkipCA:
		return fmt.Errorf("tls.verification.mode: %s cannot be had: Envoy looks at no name of a certificate whose authority it does not verify: use %s to accept anybody", VerifySkipCA, VerifySkipAll)
	default:
		if reason := pemProblem(texts[0]); reason != "" {
			return fmt.Errorf("tls.verification.caCert: %s: a proxy believes no authority by itself, so give those of the service, or the mode %s", reason, VerifySkipAll)
		}
	}
	if (texts[1] == "") != (texts[2] == "") {
		return fmt.Errorf("tls.verification: clientCert and clientKey go together")
	}
	for i, san := range v.SubjectAltNames {
		if san.Type != "" && san.Type != MatchExact && san.Type != MatchPrefix {
			return fmt.Errorf("tls.verification.subjectAltNames[%d].type: want %s or %s, got %q", i, MatchExact, MatchPrefix, san.Type)
		}
	}
	for _, version := range []string{t.Version.Min, t.Version.Max} {
		if !slices.Contains([]string{"", "TLSAuto", "TLS10", "TLS11", "TLS12", "TLS13"}, version) {
			return fmt.Errorf("tls.version: want TLSAuto or TLS10 to TLS13, got %q", version)
		}
	}
	return nil
}

// Unreachable says why no proxy can send to the service, or returns nil.
func (s *MeshExternalService) Unreachable() error {
	if len(s.Endpoints) == 0 {
		return fmt.Errorf("has no endpoints")
	}
	_, err := s.ReadTLS()
	return err
}
