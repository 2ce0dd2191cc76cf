package tracker

import (
	"time"
)

// NewStore says that the store behind a peer is not the one that was known here: it was restored from a backup, begun anew, or
// put back to what it was, which the two names end in. Until it is come to terms with, nothing is deleted because a list does not name it.
type NewStore struct {
	// Known is the incarnation that was known, Announced the one that was met.
	Known     string    `json:"known"`
	Announced string    `json:"announced"`
	Since     time.Time `json:"since"`
}

// Replaced says that a store that the zone did not know had other content of what the zone had, which took its place: a store that
// was restored or rolled back puts back what was changed since.
type Replaced struct {
	Count int `json:"count"`
	// Since is when the first of them was.
	Since time.Time `json:"since"`
	// Names are those of at most MaxHeldNames of them, in the zone's own answers only.
	Names []string `json:"names,omitempty"`
}
