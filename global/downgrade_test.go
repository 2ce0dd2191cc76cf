package global_test

import (
	"crypto/tls"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/causeway-mesh/causeway/global"
	"github.com/causeway-mesh/causeway/server"
)

// TestDowngrade checks that no port accepts a lower version of TLS than configured, which is 1.3 by default and at
// least 1.2, nor a weak suite of 1.2, nor plaintext.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	const strong, noSecrecy, noAEAD = tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA
	for _, configured := range []string{"", server.TLS13, server.TLS12} {
		t.Run("least "+configured, func(t *testing.T) {
			g := startGated(t, func(c *global.Config) {
				c.TLSMinVersion, c.APIAddress, c.DiagnosticsAddress = configured, "0.0.0.0:0", "0.0.0.0:0"
			})
			for _, port := range []string{"api", "kds", "diagnostics"} {
				_, number, err := net.SplitHostPort(g.addresses[port])
				g.must(err)
				for _, row := range []struct {
					version, suite uint16
					ok             bool
				}{
					{tls.VersionTLS10, noAEAD, false}, {tls.VersionTLS11, noAEAD, false},
					{tls.VersionTLS12, strong, configured == server.TLS12}, {tls.VersionTLS12, noSecrecy, false},
					{tls.VersionTLS12, noAEAD, false},
					{tls.VersionTLS13, 0, true},
				} {
					config := &tls.Config{RootCAs: g.roots, MinVersion: tls.VersionTLS10, MaxVersion: row.version, CipherSuites: []uint16{row.suite}} //nolint:gosec // that is what is tried
					if port == "kds" {
						config.NextProtos = []string{"h2"}
					}
					conn, err := (&tls.Dialer{NetDialer: &net.Dialer{Timeout: patience},
						Config: config}).DialContext(t.Context(), "tcp", "127.0.0.1:"+number)
					if err == nil {
						_ = conn.Close()
					}
					if (err == nil) != row.ok {
						t.Errorf("%s, %s, suite %s: %v", port, tls.VersionName(row.version), tls.CipherSuiteName(row.suite), err)
					}
				}
			}
			plain, err := grpc.NewClient(g.addresses["kds"], grpc.WithTransportCredentials(insecure.NewCredentials()))
			g.must(err)
			defer plain.Close()
			if err := g.enter(plain, "zone-1"); err == nil {
				t.Error("it answers in plaintext")
			}
		})
	}
}

func TestUnknownTLSVersion(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.1", "1.0", "TLS1.3", "0"} {
		if _, err := server.ParseTLSVersion(version); err == nil {
			t.Errorf("%s is taken", version)
		}
	}
}
