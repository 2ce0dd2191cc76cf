package lineage

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxEpoch bounds an epoch, and the text of a Seen, in bytes.
const MaxEpoch = 128

// Seen is how much a peer has seen of a store.
type Seen struct {
	// Word is the word of the store's last start when the store was at the revision At.
	Word string `json:"word"`
	At   uint64 `json:"at"`
	// Most is the latest known revision while Word was the last start's.
	Most uint64 `json:"most"`
}

// markSeparator separates a word from a mark.
const markSeparator = "."

// marked returns a word with a mark that identifies a write of the store, or the word alone if there is none. Peers
// treat both as one word.
func marked(word, mark string) string {
	if mark == "" {
		return word
	}
	return word + markSeparator + mark
}

// mark returns the mark of what was seen, or "".
func (s Seen) mark() string {
	_, mark, _ := strings.Cut(s.Word, markSeparator)
	return mark
}

// String returns the wire form, which is empty for the zero value.
func (s Seen) String() string {
	if s.Word == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", s.Word, s.At, s.Most)
}

// ParseSeen parses String's form. Anything else yields the zero value.
func ParseSeen(text string) Seen {
	parts := strings.Split(text[:min(len(text), MaxEpoch+1)], ":")
	if len(text) > MaxEpoch || len(parts) != 3 || !isWord(parts[0]) {
		return Seen{}
	}
	at, err := strconv.ParseUint(parts[1], 10, 64)
	most, err2 := strconv.ParseUint(parts[2], 10, 64)
	if err != nil || err2 != nil || at > most {
		return Seen{}
	}
	return Seen{Word: parts[0], At: at, Most: most}
}

// isWord accepts printable ASCII without spaces.
func isWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' })
}
