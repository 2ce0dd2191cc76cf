package server

import (
	"crypto/tls"
	"fmt"
)

// Values of the minimum TLS version. A server never accepts older versions.
const (
	TLS12 = "1.2"
	TLS13 = "1.3"
)

// ParseTLSVersion parses the minimum TLS version; empty means 1.3. The error names --tls-min-version and its values.
func ParseTLSVersion(text string) (uint16, error) {
	switch text {
	case "", TLS13:
		return tls.VersionTLS13, nil
	case TLS12:
		return tls.VersionTLS12, nil
	}
	return 0, fmt.Errorf("--tls-min-version is %q: want %s, or %s for clients that support no newer one", text, TLS13, TLS12)
}
