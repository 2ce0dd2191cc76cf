package tokens

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"time"
)

const (
	// maxSerialDigits is much more than the 40 hex digits that RFC 5280, section 4.1.2.2, allows.
	maxSerialDigits = 100
	// serialMemory is how long the serial number of a revoked certificate is remembered: only its owner knows when the certificate
	// ends, and forgetting early would be the mistake.
	serialMemory = 100 * 365 * 24 * time.Hour
)

// ParseSerial returns a certificate's serial number as it is written here: lower-case hex without leading zeros. It takes what
// other programs print, too: upper case, and colons between the digits. Errors: ErrClaims.
func ParseSerial(text string) (string, error) {
	digits := strings.ReplaceAll(text, ":", "")
	foreign := func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) }
	if digits == "" || len(digits) > maxSerialDigits || strings.ContainsFunc(digits, foreign) {
		return "", fmt.Errorf("%w: a serial number is 1 to %d hex digits", ErrClaims, maxSerialDigits)
	}
	n, _ := new(big.Int).SetString(digits, 16)
	return n.Text(16), nil
}

// RevokeCertificate refuses users' certificates of a serial number, in the form of ParseSerial, from now on and for good, whichever
// authority has signed them. Errors: ErrClaims, ErrFull.
func (i *Issuer) RevokeCertificate(ctx context.Context, serial string) error {
	if parsed, err := ParseSerial(serial); err != nil {
		return err
	} else if parsed != serial {
		return fmt.Errorf("%w: the serial number is not in lower-case hex without leading zeros: want %q", ErrClaims, parsed)
	}
	err := i.certificates.edit(ctx, func(s ids) error { return s.remember(serial, i.cfg.Now().Add(serialMemory), i.forget()) })
	if err != nil {
		return fmt.Errorf("revoked certificates: %w", err)
	}
	return nil
}

// CertificateRevoked reports whether certificates of a serial number are refused. Errors are those of the keeper, when what is
// revoked cannot be read; the certificate must not be believed then.
func (i *Issuer) CertificateRevoked(serial *big.Int) (bool, error) {
	revoked, err := i.certificates.get(context.Background())
	if err != nil {
		return false, err
	}
	return revoked.has(serial.Text(16)), nil
}
