package kds

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// LineageSecret is the secret in a server's store that holds its Lineage.
const LineageSecret = "store-lineage" //nolint:gosec // the name of a secret

const (
	// In metadataSeen, a header of HealthCheck's request, a zone says how much it has seen of the global's store, and in
	// the answer the global how much it has seen of the zone's. metadataPoint is the position of the sender's own store:
	// the global's in that answer, the zone's in the calls that open streams. metadataForgotten is present in the answer
	// if the global's store is not the one that was seen, and metadataCompared in the calls that open streams: what the
	// zone was told that the global has seen.
	metadataSeen, metadataPoint, metadataForgotten, metadataCompared = "causeway-store-seen", "causeway-store-point",
		"causeway-store-forgotten", "causeway-store-compared"

	// mostStarts bounds the starts that a lineage holds: a zone that was away for more holds its deletions.
	mostStarts = 1024
)

// Lineage is a store's own history: the servers that were started on it. A store that was rolled back, by whatever
// means, lacks the later starts, or has another next start at an earlier revision than was seen.
type Lineage struct {
	// Store is the store's epoch.
	Store string `json:"store"`
	// Shared is set if several servers write the store, so that a start does not end the writes of earlier ones.
	Shared bool `json:"shared,omitempty"`
	// Starts are the last ones, the oldest first.
	Starts []Start `json:"starts"`
}

// Start is one start of a server: a unique word, and the revision that recorded it.
type Start struct {
	Word     string `json:"word"`
	Revision uint64 `json:"revision,omitempty"`
}

// Begin adds a start, whose revision is that of the write that stores the lineage.
func (l *Lineage) Begin() {
	l.Starts = append(l.Starts, Start{Word: rand.Text()[:nonceLength]})
	if n := len(l.Starts) - mostStarts; n > 0 {
		l.Starts = slices.Clone(l.Starts[n:])
	}
}

// ParseLineage reads what Encode wrote, as stored at a revision.
func ParseLineage(raw []byte, revision uint64) (*Lineage, error) {
	l := &Lineage{}
	if err := json.Unmarshal(raw, l); err != nil {
		return nil, fmt.Errorf("the lineage of the store: %w", err)
	}
	if len(l.Starts) == 0 {
		return nil, errors.New("the lineage of the store: it has no start")
	}
	if last := &l.Starts[len(l.Starts)-1]; last.Revision == 0 { // written by the start itself
		last.Revision = revision
	}
	return l, nil
}

// Encode returns the form in which a lineage is stored.
func (l *Lineage) Encode() ([]byte, error) { return json.Marshal(l) }

// Point returns the position of the store at a revision.
func (l *Lineage) Point(revision uint64) Seen {
	return Seen{Word: l.Starts[len(l.Starts)-1].Word, At: revision, Most: revision}
}

// WordAt returns the word of the last start at or before a revision; empty if that is unknown.
func (l *Lineage) WordAt(revision uint64) string {
	for _, start := range slices.Backward(l.Starts) {
		if start.Revision <= revision {
			return start.Word
		}
	}
	return ""
}

// Continues reports whether a store of this lineage, now at a revision, contains all that was seen of it.
func (l *Lineage) Continues(seen Seen, revision uint64) bool {
	if seen.Word == "" {
		return true
	}
	if seen.Most > revision {
		return false
	}
	word, _, _ := strings.Cut(seen.Word, markSeparator)
	i := slices.IndexFunc(l.Starts, func(s Start) bool { return s.Word == word })
	if i < 0 {
		return false
	}
	if i+1 == len(l.Starts) {
		return true
	}
	had := seen.Most
	if l.Shared {
		had = seen.At
	}
	return had < l.Starts[i+1].Revision // at that revision, the word was the next one
}

// markSeparator separates a word from a mark.
const markSeparator = "."

// Marked returns a word with a mark, which identifies a write of the store; the word alone if there is none. Peers take
// both for one word.
func Marked(word, mark string) string {
	if mark == "" {
		return word
	}
	return word + markSeparator + mark
}

// Mark returns the mark of what was seen; empty if there is none.
func (s Seen) Mark() string {
	_, mark, _ := strings.Cut(s.Word, markSeparator)
	return mark
}

// Seen is how much a peer has seen of a store.
type Seen struct {
	// Word is that of the store's last start, when the store was at the revision At.
	Word string `json:"word"`
	At   uint64 `json:"at"`
	// Most is the latest known revision while Word was that of the last start.
	Most uint64 `json:"most"`
}

// behind returns what was seen once a message was: its revision, and the word at it if the message says it.
func (s Seen) behind(said progress) Seen {
	switch {
	case s.Word == "":
	case said.word != "":
		s.Word, s.At, s.Most = said.word, said.revision, max(s.Most, said.revision)
	default:
		s.Most = max(s.Most, said.revision)
	}
	return s
}

// String returns the form on the wire; empty for the zero value.
func (s Seen) String() string {
	if s.Word == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", s.Word, s.At, s.Most)
}

// parseSeen reads String's form from a header; anything else yields the zero value.
func parseSeen(values []string) Seen {
	if len(values) != 1 {
		return Seen{}
	}
	return ParseSeen(values[0])
}

// ParseSeen reads String's form; anything else yields the zero value.
func ParseSeen(text string) Seen {
	parts := strings.Split(text[:min(len(text), maxEpoch+1)], ":")
	if len(text) > maxEpoch || len(parts) != 3 || !isWord(parts[0]) {
		return Seen{}
	}
	at, err := strconv.ParseUint(parts[1], 10, 64)
	most, err2 := strconv.ParseUint(parts[2], 10, 64)
	if err != nil || err2 != nil || at > most {
		return Seen{}
	}
	return Seen{Word: parts[0], At: at, Most: most}
}
