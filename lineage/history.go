package lineage

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// historySecret is the secret in a server's store that holds its history.
	historySecret = "store-lineage" //nolint:gosec // the name of a secret

	// mostStarts bounds the starts in a history. A zone that missed more holds its deletions.
	mostStarts = 1024

	// wordLength is the length of the word of a start: 65 bits.
	wordLength = 13
)

// history is a store's own history: the servers that were started on it. A store that was rolled back, in any way,
// lacks the later starts, or has a different next start at an earlier revision than was seen.
type history struct {
	// Store is the store's epoch.
	Store string `json:"store"`
	// Shared is set if several servers write the store, so that a start does not end the writes of earlier ones.
	Shared bool `json:"shared,omitempty"`
	// Starts are the last ones, the oldest first.
	Starts []start `json:"starts"`
}

// start is one start of a server: a unique word, and the revision that recorded it.
type start struct {
	Word     string `json:"word"`
	Revision uint64 `json:"revision,omitempty"`
}

// begin adds a start, whose revision is that of the write that stores the lineage.
func (h *history) begin() {
	h.Starts = append(h.Starts, start{Word: rand.Text()[:wordLength]})
	if n := len(h.Starts) - mostStarts; n > 0 {
		h.Starts = slices.Clone(h.Starts[n:])
	}
}

// parse parses the output of encode, stored at a revision.
func parse(raw []byte, revision uint64) (*history, error) {
	h := &history{}
	if err := json.Unmarshal(raw, h); err != nil {
		return nil, fmt.Errorf("the lineage of the store: %w", err)
	}
	if len(h.Starts) == 0 {
		return nil, errors.New("the lineage of the store: it has no start")
	}
	if last := &h.Starts[len(h.Starts)-1]; last.Revision == 0 { // written by the start itself
		last.Revision = revision
	}
	return h, nil
}

// encode returns the stored form of a lineage.
func (h *history) encode() ([]byte, error) { return json.Marshal(h) }

// point returns the position of the store at a revision.
func (h *history) point(revision uint64) Seen {
	return Seen{Word: h.Starts[len(h.Starts)-1].Word, At: revision, Most: revision}
}

// wordAt returns the word of the last start at or before a revision, or "" if unknown.
func (h *history) wordAt(revision uint64) string {
	for _, start := range slices.Backward(h.Starts) {
		if start.Revision <= revision {
			return start.Word
		}
	}
	return ""
}

// continues reports whether a store of this lineage, now at a revision, contains everything that was seen of it.
func (h *history) continues(seen Seen, revision uint64) bool {
	if seen.Word == "" {
		return true
	}
	if seen.Most > revision {
		return false
	}
	word, _, _ := strings.Cut(seen.Word, markSeparator)
	i := slices.IndexFunc(h.Starts, func(s start) bool { return s.Word == word })
	if i < 0 {
		return false
	}
	if i+1 == len(h.Starts) {
		return true
	}
	had := seen.Most
	if h.Shared {
		had = seen.At
	}
	return had < h.Starts[i+1].Revision // at that revision, the word was the next one
}
