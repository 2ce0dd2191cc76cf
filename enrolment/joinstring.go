package enrolment

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/kds"
)

// A join string is joinKind, "v" and the number of its format, a colon, and the content in that format.
const (
	joinKind   = "causeway-join:"
	joinPrefix = joinKind + "v1:" // of the newest format, which Encode writes
)

// joinFormats returns a parser for each format, starting with format 1: an operator carries strings from an older
// global to a newer zone, and vice versa.
func joinFormats() []func(encoded string) (*JoinString, error) {
	return []func(string) (*JoinString, error){parseJoinString}
}

// Limits of a join string.
const (
	maxJoinString = 8 << 10
	// MaxJoinAddresses bounds the addresses in a join string.
	MaxJoinAddresses = 16
	maxJoinToken     = 4 << 10
)

// ErrJoinFormat reports that a newer global made the join string.
var ErrJoinFormat = errors.New("the join string's format is too new")

// ErrJoinString reports that a text is not a join string.
var ErrJoinString = errors.New("not a join string: copy the whole line that begins with " + joinPrefix +
	", as causewayctl zone create prints it")

// JoinString is all that a server needs to become a zone: one line that an operator carries from the global to the
// zone. It contains a secret, the token, until that is used or has expired.
type JoinString struct {
	// Zone is the name that the server will have.
	Zone string
	// Addresses are the KDS addresses of the global, each host:port, the best first; at least one.
	Addresses []string
	// CASHA256 is the SHA-256, in hex, of the certificate of the CA that signs the global's certificate.
	CASHA256 string
	// Token is exchanged for a credential, once.
	Token string
}

// joinWire is the JSON of format 1.
type joinWire struct {
	Zone      string   `json:"zone"`
	Addresses []string `json:"addresses"`
	CA        []byte   `json:"ca"`
	Token     string   `json:"token"`
}

// Encode returns the string. It fails for content that ParseJoinString would refuse.
func (j *JoinString) Encode() (string, error) {
	ca, err := hex.DecodeString(j.CASHA256)
	if err != nil {
		return "", fmt.Errorf("CA: %w", err)
	}
	raw, err := json.Marshal(joinWire{Zone: j.Zone, Addresses: j.Addresses, CA: ca, Token: j.Token})
	if err != nil {
		return "", err
	}
	out := joinPrefix + base64.RawURLEncoding.EncodeToString(raw)
	_, err = ParseJoinString(out)
	return out, err
}

// ParseJoinString parses what Encode returns, ignoring surrounding space. Errors wrap ErrJoinString or ErrJoinFormat,
// and reveal nothing of the string.
func ParseJoinString(s string) (*JoinString, error) {
	s = strings.TrimSpace(s)
	version, encoded, ok := strings.Cut(strings.TrimPrefix(s, joinKind), ":")
	if !ok || !strings.HasPrefix(s, joinKind) || len(s) > maxJoinString {
		return nil, ErrJoinString
	}
	formats := joinFormats()
	switch n, err := strconv.ParseUint(strings.TrimPrefix(version, "v"), 10, 16); {
	case err != nil || n == 0 || version != "v"+strconv.FormatUint(n, 10):
		return nil, ErrJoinString
	case n > uint64(len(formats)):
		return nil, fmt.Errorf("%w: it has format %d, and this program reads up to %d: use the version that the global has (causewayctl version shows it), or a newer one", ErrJoinFormat, n, len(formats))
	default:
		return formats[n-1](encoded)
	}
}

// parseJoinString parses format 1: JSON in base64.
func parseJoinString(encoded string) (*JoinString, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("%w: a part of it is missing or was changed", ErrJoinString)
	}
	var wire joinWire
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if err := decoder.Decode(&wire); err != nil || decoder.More() {
		return nil, fmt.Errorf("%w: a part of it is missing or was changed", ErrJoinString)
	}
	j := &JoinString{Zone: wire.Zone, Addresses: wire.Addresses, CASHA256: hex.EncodeToString(wire.CA), Token: wire.Token}
	return j, j.check(wire.CA)
}

func (j *JoinString) check(ca []byte) error {
	switch {
	case kds.CheckZoneName(j.Zone) != nil:
		return fmt.Errorf("%w: it names no zone", ErrJoinString)
	case len(j.Addresses) == 0 || len(j.Addresses) > MaxJoinAddresses:
		return fmt.Errorf("%w: it has %d addresses, want 1 to %d", ErrJoinString, len(j.Addresses), MaxJoinAddresses)
	case len(ca) != sha256.Size:
		return fmt.Errorf("%w: it has no SHA-256 of a CA", ErrJoinString)
	case j.Token == "" || len(j.Token) > maxJoinToken || strings.ContainsFunc(j.Token, notInTokens):
		return fmt.Errorf("%w: it has no token", ErrJoinString)
	}
	for _, address := range j.Addresses {
		if err := CheckAddress(address); err != nil {
			return fmt.Errorf("%w: %w", ErrJoinString, err)
		}
	}
	return nil
}

func notInTokens(c rune) bool { return c <= ' ' || c > '~' }

// CheckAddress accepts host:port with a port of 1 to 65535.
func CheckAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	n, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || bad != nil || n == 0 || host == "" || len(host) > 253 || strings.ContainsFunc(host, notInHosts) {
		return errors.New("one of its addresses is not host:port")
	}
	return nil
}

func notInHosts(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._:%", c))
}
