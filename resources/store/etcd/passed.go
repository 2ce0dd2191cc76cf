package etcd

import "slices"

// mostPassed is how many writes a server remembers that it has followed, at most twice as many at times: 16 bytes each.
const mostPassed = 1 << 17

// passed holds the writes of head that the view went through, each the next after the one before. By them a server tells
// what etcd had at a revision after etcd's history of that time is compacted.
type passed struct {
	at      []int64
	digests []string // as in a Mark
}

// add adds the next write. Unless it follows the last one, which is known of no other write in between, it is the first.
func (p *passed) add(at int64, value string, follows bool) {
	if !follows {
		p.at, p.digests = nil, nil
	}
	if len(p.at) == 2*mostPassed {
		p.at = append([]int64(nil), p.at[mostPassed:]...)
		p.digests = append([]string(nil), p.digests[mostPassed:]...)
	}
	p.at, p.digests = append(p.at, at), append(p.digests, digestOf(value))
}

// since returns the writes after one. joined reports that no other is in between.
func (p *passed) since(at int64) (more passed, joined bool) {
	i, _ := slices.BinarySearch(p.at, at+1)
	return passed{slices.Clone(p.at[i:]), slices.Clone(p.digests[i:])}, len(p.at) > 0 && p.at[0] <= at
}

// has reports whether there was a write with the digest at the revision; known is false for a revision from before the
// first, or after the last.
func (p *passed) has(at int64, digest string) (is, known bool) {
	if len(p.at) == 0 || at < p.at[0] || at > p.at[len(p.at)-1] {
		return false, false
	}
	i, found := slices.BinarySearch(p.at, at)
	return found && p.digests[i] == digest, true
}
