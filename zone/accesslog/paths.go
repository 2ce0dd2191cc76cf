package accesslog

import "time"

// Limits on the paths that a Journal distinguishes within its entries, and on one path in bytes.
const (
	maxPathsOfEntry = 32
	maxPathsOfProxy = 256
	maxPaths        = 40_000
	maxPath         = 256
)

// pathSeen counts one path in an Entry, with the time of the last occurrence.
type pathSeen struct {
	count uint64
	last  time.Time
}

// addPathLocked counts a path of an entry, which is empty on TCP. If there is no room, it counts as elsewhere.
func (j *Journal) addPathLocked(e *Entry, proxy, path string, at time.Time) {
	if e.Method == "" {
		return
	}
	p, known := e.paths[path]
	if !known && (path == "" || len(path) > maxPath || len(e.paths) >= maxPathsOfEntry || !j.roomForPathLocked(proxy)) {
		e.elsewhere++
		return
	}
	if !known {
		j.paths++
		j.pathsOf[proxy]++
		if e.paths == nil {
			e.paths = map[string]pathSeen{}
		}
	}
	p.count++
	if at.After(p.last) {
		p.last = at
	}
	e.paths[path] = p
}

// roomForPathLocked reports whether there is room for a proxy's path. Each proxy has a share, so that none uses up the
// room of others.
func (j *Journal) roomForPathLocked(proxy string) bool {
	return j.pathsOf[proxy] < max(maxPathsOfProxy, maxPaths/max(1, len(j.proxies))) && j.paths < 2*maxPaths
}

// forgetPathsLocked releases the room of a removed entry.
func (j *Journal) forgetPathsLocked(e *Entry, proxy string) {
	j.paths -= len(e.paths)
	if j.pathsOf[proxy] -= len(e.paths); j.pathsOf[proxy] <= 0 {
		delete(j.pathsOf, proxy)
	}
}
