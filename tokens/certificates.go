package tokens

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"time"
)

const (
	// maxSerialDigits is far above the 40 hex digits that RFC 5280, section 4.1.2.2, allows.
	maxSerialDigits = 100
	// serialMemory is how long the serial number of a revoked certificate is remembered. Only the owner knows when the
	// certificate expires, and forgetting too early is the dangerous mistake.
	serialMemory = 100 * 365 * 24 * time.Hour
)

// ParseSerial returns a certificate's serial number in the form used here: lower-case hex without leading zeros. It
// also accepts the forms that other programs print: upper case, and colons between the digits. Errors: ErrClaims.
func ParseSerial(text string) (string, error) {
	digits := strings.ReplaceAll(text, ":", "")
	foreign := func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) }
	if digits == "" || len(digits) > maxSerialDigits || strings.ContainsFunc(digits, foreign) {
		return "", fmt.Errorf("%w: a serial number is 1 to %d hex digits", ErrClaims, maxSerialDigits)
	}
	n, _ := new(big.Int).SetString(digits, 16)
	return n.Text(16), nil
}

// RevokeCertificate refuses users' certificates with a serial number, in the form of ParseSerial, from now on and
// permanently, whichever authority signed them. Errors: ErrClaims, ErrFull and those of the keeper.
func (i *Issuer) RevokeCertificate(ctx context.Context, serial string) error {
	if parsed, err := ParseSerial(serial); err != nil {
		return err
	} else if parsed != serial {
		return fmt.Errorf("%w: the serial number is not in lower-case hex without leading zeros: want %q", ErrClaims, parsed)
	}
	err := i.certificates.edit(ctx,
		func(s ids) error { return s.add(serial, i.cfg.Now().Add(serialMemory), i.forget()) })
	if err != nil {
		return fmt.Errorf("revoked certificates: %w", err)
	}
	return nil
}

// CertificateRevoked reports whether certificates with a serial number are refused. It returns the keeper's error if it
// cannot read the revoked ones. The caller must not trust the certificate then.
func (i *Issuer) CertificateRevoked(serial *big.Int) (bool, error) {
	revoked, err := i.certificates.get(context.Background())
	if err != nil {
		return false, err
	}
	return revoked.has(serial.Text(16)), nil
}
