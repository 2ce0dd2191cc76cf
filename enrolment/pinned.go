package enrolment

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// VerifyPinned accepts a chain that contains the pinned certificate: either as the CA that signed the leaf for this
// host, or as the leaf itself, at the time now.
func VerifyPinned(state tls.ConnectionState, pin []byte, host string, now time.Time) error {
	chain := state.PeerCertificates
	for i, cert := range chain {
		if sum := sha256.Sum256(cert.Raw); string(sum[:]) != string(pin) {
			continue
		}
		if i == 0 {
			if now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
				return fmt.Errorf("the global's pinned certificate is valid from %s until %s, and this machine's clock says %s",
					cert.NotBefore.UTC().Format(time.RFC3339), cert.NotAfter.UTC().Format(time.RFC3339),
					now.UTC().Format(time.RFC3339))
			}
			return nil
		}
		options := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), DNSName: host,
			CurrentTime: now}
		options.Roots.AddCert(cert)
		for _, other := range chain[1:] {
			options.Intermediates.AddCert(other)
		}
		_, err := chain[0].Verify(options)
		return err
	}
	return errors.New(
		"the global presents no certificate with the pinned SHA-256: compare with what the global printed at its start")
}
