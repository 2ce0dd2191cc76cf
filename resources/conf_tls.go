package resources

// TLSConf is the `default` of a MeshTLS, in Kuma's format. TLSVersion and TLSCiphers apply to both directions of a
// proxy, Mode to inbound traffic.
type TLSConf struct {
	TLSVersion *TLSVersions `json:"tlsVersion,omitempty"`
	TLSCiphers []string     `json:"tlsCiphers,omitempty"`
	Mode       *string      `json:"mode,omitempty"`
}

// Modes of a MeshTLS. Strict accepts mutual TLS only, Permissive also plaintext.
const (
	TLSStrict     = "Strict"
	TLSPermissive = "Permissive"
)

// Versions of a MeshTLS. TLSAuto is the behaviour without one.
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
