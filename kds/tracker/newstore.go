package tracker

import (
	"time"
)

// NewStore reports that the store behind a peer is not the known one: it was restored from a backup, recreated, or
// rolled back, in which case both names end in a revision. Until it is accepted, nothing is deleted because a list does
// not name it.
type NewStore struct {
	// Known is the known epoch, Announced that of the peer's store now.
	Known     string    `json:"known"`
	Announced string    `json:"announced"`
	Since     time.Time `json:"since"`
}

// Replaced reports that an unknown store had other content for the zone's resources, which replaced theirs: a store
// that was restored or rolled back reverts later changes.
type Replaced struct {
	Count int `json:"count"`
	// Since is the time of the first.
	Since time.Time `json:"since"`
	// Names are those of at most MaxHeldNames of them, in the zone's own answers only.
	Names []string `json:"names,omitempty"`
}
