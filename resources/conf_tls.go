package resources

// TLSConf is the `default` of a MeshTLS, in Kuma's format. TLSVersion and TLSCiphers hold for what a proxy receives and
// for what it sends, Mode for what it receives.
type TLSConf struct {
	TLSVersion *TLSVersions `json:"tlsVersion,omitempty"`
	TLSCiphers []string     `json:"tlsCiphers,omitempty"`
	Mode       *string      `json:"mode,omitempty"`
}

// Modes of a MeshTLS. Strict takes mutual TLS only, Permissive also clients in the clear.
const (
	TLSStrict     = "Strict"
	TLSPermissive = "Permissive"
)

// Versions of a MeshTLS. TLSAuto is what holds without one.
const (
	TLSAuto = "TLSAuto"
	TLS12   = "TLS12"
	TLS13   = "TLS13"
)

var (
	tlsModes    = []string{TLSStrict, TLSPermissive}
	tlsVersions = []string{TLSAuto, TLS12, TLS13}
	tlsCiphers  = []string{
		"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305",
		"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305",
	}
)
