package kds

import "github.com/causeway-mesh/causeway/lineage"

const (
	// In metadataSeen, a header of HealthCheck's request, a zone says how much it has seen of the global's store, and in
	// the answer the global how much it has seen of the zone's. metadataPoint is the position of the sender's own store:
	// the global's in that answer, the zone's in the calls that open streams. metadataForgotten is present in the answer
	// if the global's store is not the one that was seen, and metadataCompared in the calls that open streams: what the
	// zone was told that the global has seen.
	metadataSeen, metadataPoint, metadataForgotten, metadataCompared = "causeway-store-seen", "causeway-store-point",
		"causeway-store-forgotten", "causeway-store-compared"
)

// after returns what was seen once a message was: its revision, and the word at it if the message says it.
func after(seen lineage.Seen, said progress) lineage.Seen {
	switch {
	case seen.Word == "":
	case said.word != "":
		seen.Word, seen.At, seen.Most = said.word, said.revision, max(seen.Most, said.revision)
	default:
		seen.Most = max(seen.Most, said.revision)
	}
	return seen
}

// parseSeen reads what was seen from a header; anything else yields the zero value.
func parseSeen(values []string) lineage.Seen {
	if len(values) != 1 {
		return lineage.Seen{}
	}
	return lineage.ParseSeen(values[0])
}
