package store

import (
	"slices"
	"sort"
)

// Defaults of the changelog's window.
const (
	DefaultWindowCommits = 4_096
	DefaultWindowChanges = 16_384
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
	// dead and deadChanges count what left the window and is still in the array in front of commits.
	dead, deadChanges int

	maxCommits, maxChanges int
}

// append returns the window with commits added and with the oldest ones gone that no longer fit. A group of commits that
// alone is too big leaves an empty window.
func (l changelog) append(commits []*Commit) changelog {
	for _, c := range commits {
		l.commits = append(l.commits, c)
		l.changes += len(c.Changes)
	}
	for len(l.commits) > l.maxCommits || l.changes > l.maxChanges {
		oldest := l.commits[0]
		l.commits = l.commits[1:]
		l.floor = oldest.Revision
		l.changes -= len(oldest.Changes)
		l.dead++
		l.deadChanges += len(oldest.Changes)
	}
	if l.dead > l.maxCommits || l.deadChanges > l.maxChanges {
		// The array still refers to what left the window. Moving to a new one now costs less than what was appended since
		// the last move, and keeps memory within twice the window.
		l.commits = slices.Clone(l.commits)
		l.dead, l.deadChanges = 0, 0
	}
	return l
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
