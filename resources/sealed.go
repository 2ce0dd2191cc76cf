package resources

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// The forms of a secret in a spec instead of its plain text. The sealed and hidden forms consist of base64 characters,
// so they can replace any value.
const (
	// sealedMark begins a value that is sealed under the key of the server that keeps it.
	sealedMark = "causewaySealedV1"
	// hiddenMark begins the hash of a value that another server keeps.
	hiddenMark = "causewayHiddenV1"
	// shownMark begins the form of either that people see.
	shownMark = "sha256:"
)

// SealedText returns the form of sealed bytes in a spec.
func SealedText(sealed []byte) string { return sealedMark + base64.StdEncoding.EncodeToString(sealed) }

// SealedBytes is the inverse of SealedText. ok is false if the text has another form.
func SealedBytes(text string) (sealed []byte, ok bool) {
	rest, ok := strings.CutPrefix(text, sealedMark)
	if !ok {
		return nil, false
	}
	sealed, err := base64.StdEncoding.DecodeString(rest)
	return sealed, err == nil
}

func isSealedText(text string) bool { return strings.HasPrefix(text, sealedMark) }

// HiddenText returns the form in which another server receives a value that only this server uses.
func HiddenText(sealed string) string {
	sum := sha256.Sum256([]byte(sealed))
	return hiddenMark + base64.StdEncoding.EncodeToString(sum[:])
}

// IsHidden reports whether a text represents a secret without being one: sealed, hidden or shown.
func IsHidden(text string) bool {
	return isSealedText(text) || strings.HasPrefix(text, hiddenMark) || IsShown(text)
}

// IsShown reports whether a text is the shown form of a secret.
func IsShown(text string) bool {
	digest, ok := strings.CutPrefix(text, shownMark)
	raw, err := hex.DecodeString(digest)
	return ok && err == nil && len(raw) == sha256.Size
}

// ShownText returns the form of a sealed or hidden value that people see. It is a hash of the sealed form, which is
// random, so that even a short value cannot be found by trial. It stays the same until the value changes.
func ShownText(text string) string {
	if rest, ok := strings.CutPrefix(text, hiddenMark); ok {
		if sum, err := base64.StdEncoding.DecodeString(rest); err == nil {
			return shownMark + hex.EncodeToString(sum)
		}
	}
	sum := sha256.Sum256([]byte(text))
	return shownMark + hex.EncodeToString(sum[:])
}

// Redact returns raw with every sealed or hidden value replaced by its shown form, or raw itself if there is none. It
// recognises the values by their form, so it works on any text: JSON, a log line, JSON in JSON.
func Redact(raw []byte) []byte {
	at := nextMark(raw)
	if at < 0 {
		return raw
	}
	var out []byte
	for at >= 0 {
		out = append(out, raw[:at]...)
		end := at
		for end < len(raw) && isBase64(raw[end]) {
			end++
		}
		out = append(out, ShownText(string(raw[at:end]))...)
		raw = raw[end:]
		at = nextMark(raw)
	}
	return append(out, raw...)
}

func nextMark(raw []byte) int {
	sealed, hidden := bytes.Index(raw, []byte(sealedMark)), bytes.Index(raw, []byte(hiddenMark))
	if sealed < 0 || hidden >= 0 && hidden < sealed {
		return hidden
	}
	return sealed
}

func isBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '='
}
