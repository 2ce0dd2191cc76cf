package store

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// ViewConfig configures a View. The zero value is valid.
type ViewConfig struct {
	// WindowCommits and WindowChanges bound the changelog: it holds as many of the latest commits as fit within both.
	// Defaults: DefaultWindowCommits, DefaultWindowChanges. It uses memory for up to twice that.
	WindowCommits, WindowChanges int
	// WindowBytes bounds the changelog by the size of what its commits replaced or removed. Default:
	// DefaultWindowBytes.
	WindowBytes int
	// Background reports whether a change is this server's bookkeeping, which readers of Notable ignore. It must depend
	// on the change alone, be quick, and not write. Nil means that no change is.
	Background func(Change) bool
	// Undecoded makes the view keep specs without the typed forms that a writer has decoded to judge them, as it has them
	// after a restart. It is for a server that decodes few of the specs that it holds.
	Undecoded bool
	// Now is the clock for creation and modification times, time.Now by default.
	Now func() time.Time
}

// View is the view in memory that every store reads from: an indexed copy of all resources and the changelog.
// It implements Reader. Writers go through Begin, one at a time.
type View struct {
	now        func() time.Time
	background func(Change) bool
	undecoded  bool
	// current is replaced as a whole by each commit, so a reader always sees a consistent state.
	current atomic.Pointer[state]
	// counts has every type of the registry. The map never changes; its values do.
	counts map[resources.Type]*atomic.Int64

	// writer is held by the current transaction. It guards assigned and the order of publications.
	writer sync.Mutex
	// assigned is the highest revision ever assigned to a batch.
	assigned uint64
}

// state is everything that readers see, at one revision. It is immutable.
type state struct {
	snapshot
	// log has all commits, notable those with a change that is not background.
	log, notable changelog
	next         chan struct{}
}

// NewView returns an empty view at revision 0.
func NewView(config ViewConfig) *View {
	if config.WindowCommits <= 0 {
		config.WindowCommits = DefaultWindowCommits
	}
	if config.WindowChanges <= 0 {
		config.WindowChanges = DefaultWindowChanges
	}
	if config.WindowBytes <= 0 {
		config.WindowBytes = DefaultWindowBytes
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	v := &View{
		now:        config.Now,
		background: config.Background,
		undecoded:  config.Undecoded,
		counts:     map[resources.Type]*atomic.Int64{},
	}
	for _, d := range resources.Stored() {
		v.counts[d.Type] = new(atomic.Int64)
	}
	log := changelog{maxCommits: config.WindowCommits, maxChanges: config.WindowChanges, maxBytes: config.WindowBytes}
	v.publish(0, index{}, log, log)
	return v
}

// Load fills an empty view with the contents of a store: read calls put for each resource and returns the revision of
// the store. Resources are stored without a copy, so the caller must not change them afterwards. put is not safe for
// concurrent use. If read fails, Load loads nothing and returns its error. The changelog starts at the revision.
func (v *View) Load(read func(put func(*resources.Resource) error) (revision uint64, err error)) error {
	v.writer.Lock()
	defer v.writer.Unlock()
	var loaded index
	counts := map[resources.Type]int64{}
	revision, err := read(func(res *resources.Resource) error {
		counts[res.Type]++
		loaded.set(nil, res)
		return nil
	})
	if err != nil {
		return err
	}
	for of, n := range counts {
		v.counts[of].Add(n)
	}
	v.assigned = revision
	log := v.current.Load().log
	log.floor = revision
	v.publish(revision, loaded, log, log)
	return nil
}

// publish makes a state visible to readers.
func (v *View) publish(revision uint64, now index, log, notable changelog) {
	previous := v.current.Swap(&state{
		snapshot: snapshot{revision: revision, index: now},
		log:      log,
		notable:  notable,
		next:     make(chan struct{}),
	})
	if previous != nil {
		close(previous.next)
	}
}

// count updates the number of resources by type.
func (v *View) count(changes []Change) {
	for _, c := range changes {
		switch {
		case c.Old == nil:
			v.counts[c.New.Type].Add(1)
		case c.New == nil:
			v.counts[c.Old.Type].Add(-1)
		}
	}
}

// Snapshot implements Reader.
func (v *View) Snapshot() Snapshot { return &v.current.Load().snapshot }

// Changes implements Reader.
func (v *View) Changes(since uint64) ([]*Commit, bool) {
	s := v.current.Load()
	if since > s.revision {
		return nil, false
	}
	return s.log.after(since)
}

// Notable implements Reader.
func (v *View) Notable(since uint64) ([]*Commit, bool) {
	s := v.current.Load()
	if since > s.revision {
		return nil, false
	}
	return s.notable.after(since)
}

// log returns the changelogs with commits added.
func (v *View) log(commits []*Commit) (all, notable changelog) {
	s := v.current.Load()
	all = s.log.append(commits)
	if v.background == nil {
		return all, all
	}
	if i := slices.IndexFunc(commits, v.isBackground); i >= 0 {
		commits = slices.DeleteFunc(slices.Clone(commits), v.isBackground)
	}
	return all, s.notable.append(commits)
}

func (v *View) isBackground(c *Commit) bool {
	for _, change := range c.Changes {
		if !v.background(change) {
			return false
		}
	}
	return true
}

// Changed implements Reader.
func (v *View) Changed() (uint64, <-chan struct{}) {
	s := v.current.Load()
	return s.revision, s.next
}
