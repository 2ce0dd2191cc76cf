package checkpoint

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Limits. What exceeds them is not kept, and issued again after a restart.
const (
	maxEntries = 16 << 10
	// maxEntry and maxTotal limit one entry and all entries, in bytes.
	maxEntry = 4 << 10
	maxTotal = 16 << 20
)

// Sealer is a secrets.Box.
type Sealer interface {
	Seal(plain []byte, purpose string) ([]byte, error)
	Open(sealed []byte, purpose string) ([]byte, error)
}

// ID identifies an entry: its kind, and its Dataplane.
type ID struct {
	Kind      string `json:"kind"`
	Mesh      string `json:"mesh,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// Config sets where a Cache is stored. Path and Box are required.
type Config struct {
	// Path is the file.
	Path string
	// Box seals it.
	Box Sealer
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// Log is slog.Default when nil.
	Log *slog.Logger
	// Registerer takes the metrics; none are registered when nil.
	Registerer prometheus.Registerer
}

// Cache holds the entries. None of its methods but Close waits for the disk, and a nil Cache keeps nothing. Safe for
// concurrent use.
type Cache struct {
	cfg     Config
	metrics *metrics
	wake    chan struct{}

	mu      sync.Mutex
	entries map[ID]*entry   // guarded by mu
	pending map[ID]struct{} // guarded by mu: changes that are not in the file yet
	// underway counts the pending changes that are being written. Guarded by mu.
	underway int
	total    int  // guarded by mu: bytes of all entries
	full     bool // guarded by mu: something was not kept, which is logged once

	writing sync.Mutex // held while the file is written
	whole   bool       // guarded by writing: the file ends with a line that this process wrote
	size    int        // guarded by writing: bytes of the file
	live    int        // guarded by writing: bytes of its live lines, when it was last written as a whole
	failing bool       // guarded by writing
	tidied  time.Time  // guarded by writing
}

// entry is in plaintext until it is in the file, and then in its sealed form. Only the goroutine that writes the file
// changes it, with Cache.mu held.
type entry struct {
	plain, line []byte
	size        int
	until       time.Time // zero until the entry is deleted
	// before means that an earlier process sealed the line.
	before bool
}

func (e *entry) expired(now time.Time) bool { return !e.until.IsZero() && !now.Before(e.until) }

// Open reads the kept entries. It reports unreadable ones in the log and the metrics, and starts without them.
func Open(cfg Config) *Cache {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	b := &Cache{cfg: cfg, wake: make(chan struct{}, 1), entries: map[ID]*entry{}, pending: map[ID]struct{}{}}
	b.metrics = newMetrics(cfg.Registerer, func() float64 { return b.count(func() int { return len(b.entries) }) },
		func() float64 { return b.count(func() int { return len(b.pending) + b.underway }) })
	found, err := readFile(&cfg)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.metrics.unreadable.Inc()
		cfg.Log.Error("stored identities cannot be read: proxies get new ones", "file", cfg.Path, "error", err)
	}
	if found.bad > 0 {
		b.metrics.unreadable.Add(float64(found.bad))
		cfg.Log.Error("some stored identities cannot be read: their proxies get new ones",
			"file", cfg.Path, "entries", found.bad, "of", found.lines, "error", found.err)
	}
	now := cfg.Now()
	for id, e := range found.entries {
		if !e.expired(now) && b.roomLocked(id, e.size) {
			b.entries[id] = e
			b.total += e.size
		}
	}
	return b
}

// Get returns an entry. ok is false if it does not exist or has expired. The caller must not change plain.
func (b *Cache) Get(id ID) (plain []byte, ok bool) {
	if b == nil {
		return nil, false
	}
	b.mu.Lock()
	e := b.entries[id]
	if e == nil || e.expired(b.cfg.Now()) {
		b.mu.Unlock()
		return nil, false
	}
	plain, line := e.plain, e.line
	b.mu.Unlock()
	if plain != nil {
		return plain, true
	}
	_, opened, err := b.cfg.readLine(line)
	if err != nil {
		return nil, false // lines are opened when they are read; otherwise there is a plaintext
	}
	return opened.plain, true
}

// Put keeps an entry until the given time, or until it is deleted if that is zero. Run writes it soon. Put drops
// entries that exceed the limits. The caller must not change plain afterwards.
func (b *Cache) Put(id ID, plain []byte, until time.Time) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.removeLocked(id)
	if !b.roomLocked(id, len(plain)) {
		b.expireLocked()
	}
	if !b.roomLocked(id, len(plain)) {
		b.metrics.refused.Inc()
		if !b.full {
			b.full = true
			b.cfg.Log.Warn("no room to store all issued identities: after a restart, some proxies get new ones",
				"entries", len(b.entries), "limit", maxEntries, "bytes", b.total+len(plain), "limitBytes", maxTotal,
				"kind", id.Kind, "mesh", id.Mesh, "name", id.Name, "entryBytes", len(plain), "limitEntryBytes", maxEntry)
		}
		return
	}
	b.entries[id] = &entry{plain: plain, size: len(plain), until: until}
	b.total += len(plain)
	b.touchLocked(id)
}

// IDs returns the IDs of all entries, in no particular order.
func (b *Cache) IDs() []ID {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.entries))
}

// Delete drops entries. It ignores IDs without an entry.
func (b *Cache) Delete(ids ...ID) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		b.removeLocked(id)
	}
}

// Retain drops the entries for which keep returns false. It calls keep with a lock held: keep must not call the Cache.
func (b *Cache) Retain(keep func(ID) bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range maps.Clone(b.entries) {
		if !keep(id) {
			b.removeLocked(id)
		}
	}
}

func (b *Cache) removeLocked(id ID) {
	e := b.entries[id]
	if e == nil {
		return
	}
	delete(b.entries, id)
	b.total -= e.size
	b.touchLocked(id)
}

// touchLocked marks an entry as changed and wakes Run.
func (b *Cache) touchLocked(id ID) {
	b.pending[id] = struct{}{}
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// expireLocked drops expired entries. The file needs no change: expired lines are ignored when it is read.
func (b *Cache) expireLocked() {
	now := b.cfg.Now()
	for id, e := range b.entries {
		if e.expired(now) {
			delete(b.entries, id)
			b.total -= e.size
		}
	}
}

// roomLocked reports whether a new entry fits within the limits.
func (b *Cache) roomLocked(id ID, size int) bool {
	return size+len(id.Mesh)+len(id.Namespace)+len(id.Name) <= maxEntry && len(b.entries) < maxEntries &&
		b.total+size <= maxTotal
}

// count is for the metrics.
func (b *Cache) count(of func() int) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return float64(of())
}
