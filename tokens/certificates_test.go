package tokens

import (
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"
)

// TestCertificatesAreRevokedForGood checks revocation on every replica, by the whole serial number, separately from the
// ids of tokens, and for longer than any token lives.
func TestCertificatesAreRevokedForGood(t *testing.T) {
	b := newBench(t)
	i, other := b.issuer(t, ""), b.issuer(t, "")
	if err := i.Revoke(t.Context(), "abcdef", start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := i.RevokeCertificate(t.Context(), "abcd"); err != nil {
		t.Fatal(err)
	}
	b.advance(30 * 365 * 24 * time.Hour)
	if err := other.RevokeCertificate(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	for serial, want := range map[int64]bool{0xabcd: true, 1: true, 0xabc: false, 0xabcdef: false, 0: false} {
		for _, replica := range []*Issuer{i, other, b.issuer(t, "")} {
			if got, err := replica.CertificateRevoked(big.NewInt(serial)); err != nil || got != want {
				t.Errorf("%x: revoked: %t, %v", serial, got, err)
			}
		}
	}
}

// TestSerialNumbersHaveOneSpelling checks that other spellings are parsed but not stored.
func TestSerialNumbersHaveOneSpelling(t *testing.T) {
	i := newBench(t).issuer(t, "")
	for text, want := range map[string]string{
		"5a0f": "5a0f", "5A:0F": "5a0f", "005a0f": "5a0f", "0": "0", "00": "0",
		strings.Repeat("f", maxSerialDigits): strings.Repeat("f", maxSerialDigits),
		"":                                   "", ":": "", "0x5a": "", "-5a": "", "+5a": "", "5_a": "", " 5a": "",
		"cora": "", strings.Repeat("f", maxSerialDigits+1): "",
	} {
		got, err := ParseSerial(text)
		if got != want || errors.Is(err, ErrClaims) != (want == "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
		if err := i.RevokeCertificate(t.Context(), text); errors.Is(err, ErrClaims) != (want == "" || want != text) {
			t.Errorf("%q: revoked: %v", text, err)
		}
	}
}
