package store

import (
	"slices"
	"sort"
)

// Defaults of the changelog's window.
const (
	DefaultWindowCommits = 4_096
	DefaultWindowChanges = 16_384
	// DefaultWindowBytes bounds what only the window still refers to. In memory, where specs are decoded too, it is some three times that.
	DefaultWindowBytes = 16 << 20
)

// changelog is a window on the latest commits. Each value of it is immutable: publishing makes the next one, so a reader
// needs no lock and a slow one holds up nobody. Successive values share the array behind commits; what a value sees of
// it is never written again.
type changelog struct {
	// floor is the revision up to which the window reaches back: everything after it is in commits.
	floor uint64
	// commits are in ascending order of revision.
	commits []*Commit
	// changes counts the changes of all commits.
	changes int
	// bytes is the size of what the commits replaced or removed: the store itself does not refer to it any more.
	bytes int
	// dead, deadChanges and deadBytes count what left the window and is still in the array in front of commits.
	dead, deadChanges, deadBytes int

	maxCommits, maxChanges, maxBytes int
}

// append returns the window with commits added and with the oldest ones gone that no longer fit. A group of commits that
// alone is too big leaves an empty window.
func (l changelog) append(commits []*Commit) changelog {
	for _, c := range commits {
		l.commits = append(l.commits, c)
		l.changes += len(c.Changes)
		l.bytes += replaced(c)
	}
	for len(l.commits) > l.maxCommits || l.changes > l.maxChanges || l.bytes > l.maxBytes {
		oldest := l.commits[0]
		bytes := replaced(oldest)
		l.commits = l.commits[1:]
		l.floor = oldest.Revision
		l.changes -= len(oldest.Changes)
		l.bytes -= bytes
		l.dead++
		l.deadBytes += bytes
		l.deadChanges += len(oldest.Changes)
	}
	if l.dead > l.maxCommits || l.deadChanges > l.maxChanges || l.deadBytes > l.maxBytes/4 {
		// The array still refers to what left the window. Moving to a new one costs a pointer for each commit that is left, and keeps
		// memory within twice the window.
		l.commits = slices.Clone(l.commits)
		l.dead, l.deadChanges, l.deadBytes = 0, 0, 0
	}
	return l
}

// replaced is about how large in bytes is what a commit replaced or removed.
func replaced(c *Commit) (bytes int) {
	for i := range c.Changes {
		if old := c.Changes[i].Old; old != nil {
			bytes += len(old.Spec.JSON()) + len(old.Status)
		}
	}
	return bytes
}

// after returns the commits after revision since in a slice of its own, and whether the window reaches back to since.
func (l *changelog) after(since uint64) ([]*Commit, bool) {
	if since < l.floor {
		return nil, false
	}
	i := sort.Search(len(l.commits), func(i int) bool { return l.commits[i].Revision > since })
	if i == len(l.commits) {
		return nil, true
	}
	// A copy: a reader that keeps the slice must not keep the array with what leaves the window.
	return slices.Clone(l.commits[i:]), true
}
