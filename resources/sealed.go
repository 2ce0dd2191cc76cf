package resources

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// The forms that a secret of a spec has instead of its text. Both are base64 as a whole, so that they can stand wherever a value can.
const (
	// sealedMark begins a value that is sealed under the key of the server that keeps it.
	sealedMark = "causewaySealedV1"
	// hiddenMark begins the hash of a value that another server keeps.
	hiddenMark = "causewayHiddenV1"
	// shownMark begins what people see instead of either.
	shownMark = "sha256:"
)

// SealedText is how sealed bytes stand in a spec.
func SealedText(sealed []byte) string { return sealedMark + base64.StdEncoding.EncodeToString(sealed) }

// SealedBytes is the inverse of SealedText; ok is false for a text of another form.
func SealedBytes(text string) (sealed []byte, ok bool) {
	rest, ok := strings.CutPrefix(text, sealedMark)
	if !ok {
		return nil, false
	}
	sealed, err := base64.StdEncoding.DecodeString(rest)
	return sealed, err == nil
}

func isSealedText(text string) bool { return strings.HasPrefix(text, sealedMark) }

// HiddenText is what another server is told of a value that only this one uses.
func HiddenText(sealed string) string {
	sum := sha256.Sum256([]byte(sealed))
	return hiddenMark + base64.StdEncoding.EncodeToString(sum[:])
}

// IsHidden reports whether a text stands for a secret and is none: sealed, hidden or shown.
func IsHidden(text string) bool {
	return isSealedText(text) || strings.HasPrefix(text, hiddenMark) || IsShown(text)
}

// IsShown reports whether a text is what people see of a secret.
func IsShown(text string) bool {
	digest, ok := strings.CutPrefix(text, shownMark)
	raw, err := hex.DecodeString(digest)
	return ok && err == nil && len(raw) == sha256.Size
}

// ShownText is what people see of a sealed or hidden value. It is a hash of the sealed form, which is random: nothing of the value,
// however short, can be found by trying. It stays the same until the value changes.
func ShownText(text string) string {
	if rest, ok := strings.CutPrefix(text, hiddenMark); ok {
		if sum, err := base64.StdEncoding.DecodeString(rest); err == nil {
			return shownMark + hex.EncodeToString(sum)
		}
	}
	sum := sha256.Sum256([]byte(text))
	return shownMark + hex.EncodeToString(sum[:])
}

// Redact returns text in which every sealed or hidden value is replaced by what people see of it: raw itself where there is none. It
// knows them by their form, so that text of any kind can be given: JSON, a log line, JSON in JSON.
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
