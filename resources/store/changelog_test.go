package store

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
)

// TestChangelogIsBounded appends commits of any sizes: neither the window nor what its array still refers to may exceed
// the limits.
func TestChangelogIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := changelog{maxCommits: rapid.IntRange(1, 20).Draw(t, "commits"),
			maxChanges: rapid.IntRange(1, 50).Draw(t, "changes"), maxBytes: rapid.IntRange(1, 500).Draw(t, "bytes")}
		revision, written, weighs := uint64(0), []int{}, []int{}
		for range rapid.IntRange(1, 200).Draw(t, "groups") {
			var group []*Commit
			for range rapid.IntRange(1, 4).Draw(t, "group") {
				revision++
				size := rapid.IntRange(1, 60).Draw(t, "size")
				written = append(written, size)
				c := &Commit{Revision: revision, Changes: make([]Change, size)}
				if n := rapid.IntRange(0, 300).Draw(t, "replaced"); n > 0 {
					c.Changes[0].Old = &resources.Resource{Spec: &resources.Spec{}, Status: make([]byte, n)}
				}
				weighs = append(weighs, replaced(c))
				group = append(group, c)
			}
			log = log.append(group)
			changes, bytes := 0, 0
			for _, c := range log.commits {
				changes += len(c.Changes)
				bytes += replaced(c)
			}
			if bytes > log.maxBytes || bytes != log.bytes || log.deadBytes > log.maxBytes/4 {
				t.Fatalf("%d bytes (counted %d) in a window of %d, and %d that left it", bytes, log.bytes, log.maxBytes,
					log.deadBytes)
			}
			if len(log.commits) > log.maxCommits || changes > log.maxChanges || changes != log.changes {
				t.Fatalf("%d commits with %d changes (counted %d) in a window of %d, %d", len(log.commits), changes,
					log.changes, log.maxCommits, log.maxChanges)
			}
			if log.dead > log.maxCommits || log.deadChanges > log.maxChanges {
				t.Fatalf("the array still refers to %d commits with %d changes that left the window", log.dead, log.deadChanges)
			}
			// The next older commit would not have fit.
			if floor := int(log.floor); floor > 0 && len(log.commits) < log.maxCommits &&
				changes+written[floor-1] <= log.maxChanges && bytes+weighs[floor-1] <= log.maxBytes {
				t.Fatalf("revision %d left a window of %d, %d early: it has %d commits with %d changes", floor,
					log.maxCommits, log.maxChanges, len(log.commits), changes)
			}
			if log.floor+uint64(len(log.commits)) != revision {
				t.Fatalf("floor %d and %d commits do not make revision %d", log.floor, len(log.commits), revision)
			}
		}
	})
}
