package resources

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ExternalTLS configures TLS to a MeshExternalService, in Kuma's format.
type ExternalTLS struct {
	Enabled            bool                 `json:"enabled"`
	Version            TLSVersions          `json:"version"`
	AllowRenegotiation bool                 `json:"allowRenegotiation"`
	Verification       ExternalVerification `json:"verification"`
}

// TLSVersions bounds the TLS version. The values are TLSAuto and TLS10 to TLS13. Empty means TLSAuto.
type TLSVersions struct {
	Min string `json:"min"`
	Max string `json:"max"`
}

// ExternalVerification configures which authorities the proxy trusts, and the proxy's own certificate.
type ExternalVerification struct {
	// Mode is one of the Verify constants. Empty means VerifySecured.
	Mode            string        `json:"mode"`
	ServerName      string        `json:"serverName"`
	SubjectAltNames []ExternalSAN `json:"subjectAltNames"`
	CACert          *DataSource   `json:"caCert"`
	ClientCert      *DataSource   `json:"clientCert"`
	ClientKey       *DataSource   `json:"clientKey"`
}

// ExternalSAN is a name that the server's certificate may have. Type is Exact (the default) or Prefix.
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

// DataSource is text in the resource itself, or a reference to a source in the zone that uses it: a named secret of the
// zone or a file on its machine.
type DataSource struct {
	Secret       string      `json:"secret"`
	File         *FileSource `json:"file"`
	Inline       string      `json:"inline"` // base64
	InlineString string      `json:"inlineString"`
}

// Refers reports whether the text is outside the resource.
func (s *DataSource) Refers() bool { return s != nil && (s.Secret != "" || s.File != nil) }

// Given reports whether the source is set.
func (s *DataSource) Given() bool {
	return s != nil && (s.Refers() || s.Inline != "" || s.InlineString != "")
}

// check returns an error if the source is malformed.
func (s *DataSource) check() error {
	if s == nil {
		return nil
	}
	given := 0
	for _, is := range []bool{s.Secret != "", s.File != nil, s.Inline != "", s.InlineString != ""} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return fmt.Errorf("want one of secret, file, inline and inlineString, got %d", given)
	case s.Secret != "" && !dnsSubdomain.MatchString(s.Secret):
		return fmt.Errorf("secret: want the name of a secret: lower-case letters, digits and dashes, got %q",
			shorten(s.Secret))
	case s.File != nil && !IsSourceFile(s.File.Path):
		return fmt.Errorf("file.path: want the name of a file in the folder that the zone has for this mesh and namespace (--external-secrets-dir), without a slash, got %q", shorten(s.File.Path))
	}
	return nil
}

// IsSourceFile reports whether a DataSource may name such a file: a file name without a folder.
func IsSourceFile(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= 253 && !strings.ContainsAny(name, "/\\\x00")
}

// Text returns the text of the source. It is empty for a nil source. A source that refers elsewhere, or is sealed, is
// an error.
func (s *DataSource) Text() (string, error) {
	switch {
	case s == nil:
		return "", nil
	case s.Secret != "":
		return "", fmt.Errorf("secret: a secret cannot hold it: give inline or inlineString")
	case s.File != nil:
		return "", fmt.Errorf("file: a file cannot hold it: give inline or inlineString")
	case IsHidden(s.Inline) || IsHidden(s.InlineString):
		return "", fmt.Errorf("it is sealed, and cannot be opened here")
	case s.Inline != "":
		raw, err := base64.StdEncoding.DecodeString(s.Inline)
		if err != nil {
			return "", fmt.Errorf("inline: %w", err)
		}
		return string(raw), nil
	}
	return s.InlineString, nil
}

// ChecksAuthority reports whether one of the authorities must have signed the server's certificate.
func (v *ExternalVerification) ChecksAuthority() bool { return v.Mode != VerifySkipAll }

// ChecksName reports whether the server's certificate must have a certain name.
func (v *ExternalVerification) ChecksName() bool {
	return v.Mode != VerifySkipSAN && v.Mode != VerifySkipAll
}

// ReadTLS returns the TLS configuration of the service, or nil if it is reached in plain text. An error names the field
// and the reason why no proxy can reach the service. Then no proxy sends to the service, because a connection would be
// less secure than the resource demands.
func (s *MeshExternalService) ReadTLS() (*ExternalTLS, error) {
	if len(s.TLS) == 0 {
		return nil, nil
	}
	out := &ExternalTLS{}
	dec := json.NewDecoder(strings.NewReader(string(s.TLS)))
	dec.DisallowUnknownFields() // an unknown field may demand more
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
		return fmt.Errorf("tls.verification.mode: want %s, %s, %s or %s, got %q", VerifySecured, VerifySkipSAN,
			VerifySkipCA, VerifySkipAll, v.Mode)
	}
	authority, err := v.checkSources()
	if err != nil {
		return err
	}
	switch v.Mode {
	case VerifySkipAll:
	case VerifySkipCA:
		return fmt.Errorf("tls.verification.mode: %s is impossible: Envoy does not check the names of a certificate whose authority it does not verify: use %s to accept anybody", VerifySkipCA, VerifySkipAll)
	default:
		if reason := pemProblem(authority); reason != "" {
			return fmt.Errorf("tls.verification.caCert: %s: a proxy trusts no authority by default, so give those of the service, or the mode %s", reason, VerifySkipAll)
		}
	}
	if v.ClientCert.Given() != v.ClientKey.Given() {
		return fmt.Errorf("tls.verification: clientCert and clientKey require each other")
	}
	for i, san := range v.SubjectAltNames {
		if san.Type != "" && san.Type != MatchExact && san.Type != MatchPrefix {
			return fmt.Errorf("tls.verification.subjectAltNames[%d].type: want %s or %s, got %q", i, MatchExact,
				MatchPrefix, san.Type)
		}
	}
	for _, version := range []string{t.Version.Min, t.Version.Max} {
		if !slices.Contains([]string{"", "TLSAuto", "TLS10", "TLS11", "TLS12", "TLS13"}, version) {
			return fmt.Errorf("tls.version: want TLSAuto or TLS10 to TLS13, got %q", version)
		}
	}
	return nil
}

// checkSources returns the authorities, which must be in the resource. The client's certificate and key may be
// elsewhere, or sealed.
func (v *ExternalVerification) checkSources() (authority string, err error) {
	for _, source := range []struct {
		name string
		*DataSource
	}{{"caCert", v.CACert}, {"clientCert", v.ClientCert}, {"clientKey", v.ClientKey}} {
		err := source.check()
		switch {
		case err != nil || source.DataSource == nil:
		case source.name == "caCert":
			authority, err = source.Text()
		case !source.Refers() && !IsHidden(source.Inline) && !IsHidden(source.InlineString):
			_, err = source.Text()
		}
		if err != nil {
			return "", fmt.Errorf("tls.verification.%s.%w", source.name, err)
		}
	}
	return authority, nil
}

// Unreachable returns the reason why no proxy can send to the service, or nil.
func (s *MeshExternalService) Unreachable() error {
	if len(s.Endpoints) == 0 {
		return fmt.Errorf("has no endpoints")
	}
	_, err := s.ReadTLS()
	return err
}

// RefersToSources reports whether r is a MeshExternalService or a MeshGateway that names secrets or files, which can
// change independently of it.
func RefersToSources(r *Resource) bool { return len(SourcesOf(r)) > 0 }

// SourcesOf returns the sources of a MeshExternalService or a MeshGateway that name secrets or files.
func SourcesOf(r *Resource) []*DataSource {
	if r.Type == TypeMeshGateway {
		return gatewaySources(r)
	}
	if r.Type != TypeMeshExternalService {
		return nil
	}
	spec, err := SpecAs[MeshExternalService](r)
	if err != nil {
		return nil
	}
	tls, err := spec.ReadTLS()
	if err != nil || tls == nil {
		return nil
	}
	var out []*DataSource
	for _, s := range []*DataSource{tls.Verification.ClientCert, tls.Verification.ClientKey} {
		if s.Refers() {
			out = append(out, s)
		}
	}
	return out
}
