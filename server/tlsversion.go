package server

import (
	"crypto/tls"
	"fmt"
)

// The versions of TLS that a server may be told to take at least. Older ones it never takes.
const (
	TLS12 = "1.2"
	TLS13 = "1.3"
)

// ParseTLSVersion reads the least version of TLS that is served: 1.3 when empty. The error names --tls-min-version and says what it may be.
func ParseTLSVersion(text string) (uint16, error) {
	switch text {
	case "", TLS13:
		return tls.VersionTLS13, nil
	case TLS12:
		return tls.VersionTLS12, nil
	}
	return 0, fmt.Errorf("--tls-min-version is %q: want %s, or %s for clients that have no other", text, TLS13, TLS12)
}
