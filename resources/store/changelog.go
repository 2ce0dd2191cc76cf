package store

import (
	"slices"
	"sort"
)

// Defaults of the changelog's window.
const (
	DefaultWindowCommits = 4_096
	DefaultWindowChanges = 16_384
	// DefaultWindowBytes bounds the data that only the window refers to. In memory, with decoded specs, it is about
	// three times that.
	DefaultWindowBytes = 16 << 20
)

// changelog is a window on the latest commits. Each value is immutable and publishing makes the next one, so a reader
// needs no lock and a slow reader blocks no one. Successive values share the array behind commits. The part that a
// value sees is never written again.
type changelog struct {
	// floor is the revision that the window reaches back to: every later commit is in commits.
	floor uint64
	// commits are in ascending order of revision.
	commits []*Commit
	// changes counts the changes of all commits.
	changes int
	// bytes is the size of the resources that the commits replaced or removed. The store itself no longer refers to
	// them.
	bytes int
	// dead, deadChanges and deadBytes count what left the window but is still in the array before commits.
	dead, deadChanges, deadBytes int

	maxCommits, maxChanges, maxBytes int
}

// append returns the window with commits added and without the oldest commits that no longer fit. A group of commits
// that is too big by itself leaves an empty window.
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
		// The array still refers to what left the window. Moving to a new one costs a pointer for each remaining commit
		// and keeps memory within twice the window.
		l.commits = slices.Clone(l.commits)
		l.dead, l.deadChanges, l.deadBytes = 0, 0, 0
	}
	return l
}

// replaced returns the approximate size in bytes of the resources that a commit replaced or removed.
func replaced(c *Commit) (bytes int) {
	for i := range c.Changes {
		if old := c.Changes[i].Old; old != nil {
			bytes += old.Spec.Size() + len(old.Status)
		}
	}
	return bytes
}

// after returns a copy of the commits after revision since, and reports whether the window reaches back to since.
func (l *changelog) after(since uint64) ([]*Commit, bool) {
	if since < l.floor {
		return nil, false
	}
	i := sort.Search(len(l.commits), func(i int) bool { return l.commits[i].Revision > since })
	if i == len(l.commits) {
		return nil, true
	}
	// Return a copy: a reader that keeps the slice must not keep the array, which holds what leaves the window.
	return slices.Clone(l.commits[i:]), true
}
