package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/causeway-mesh/causeway/place"
)

// LogConfig sets the folder and the size limits of an audit log.
type LogConfig struct {
	// Dir is created with mode 0700 if it is missing. Required.
	Dir string
	// MaxFileBytes is the size at which the next file begins; zero means DefaultLogFileBytes. MaxFiles limits the files
	// of each kind; zero means DefaultLogFiles.
	MaxFileBytes int64
	MaxFiles     int
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// Defaults of LogConfig.
const (
	DefaultLogFileBytes = 32 << 20
	DefaultLogFiles     = 10
)

// Refusals above this rate are only counted.
const (
	refusalsPerSecond = 20
	refusalsBurst     = 1000
	// refusalsSynced is the shortest interval between syncs of refusals. They are written before the response. If each
	// were synced, strangers could make changes wait for the disk.
	refusalsSynced = time.Second
)

// Log is the audit log: JSON lines in files that only the server's user can read. Completed actions and refusals have
// separate files with one numbering. It is safe for concurrent use; a nil Log records nothing and reads as empty.
type Log struct {
	config        LogConfig
	done, refused *journal
	folder        *place.Place
	limit         *rate.Limiter

	mu         sync.Mutex
	last       uint64          // guarded by mu: the last assigned seq
	changed    chan struct{}   // guarded by mu: closed when a line was written
	flying     map[uint64]bool // guarded by mu: lines that have a seq and are not yet on disk
	suppressed uint64          // guarded by mu
	broken     error           // guarded by mu: why the last line about a completed action could not be written
	late       []Entry         // guarded by mu: pending lines about completed actions; Ready writes them

	intents *intents
}

// OpenLog opens the log, and continues an existing one.
func OpenLog(c LogConfig) (*Log, error) {
	if c.MaxFileBytes == 0 {
		c.MaxFileBytes = DefaultLogFileBytes
	}
	if c.MaxFiles == 0 {
		c.MaxFiles = DefaultLogFiles
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	l := &Log{config: c, limit: rate.NewLimiter(refusalsPerSecond, refusalsBurst), changed: make(chan struct{}),
		flying: map[uint64]bool{}}
	var err error
	if l.folder, err = place.Hold(c.Dir); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	l.done = &journal{dir: c.Dir, folder: l.folder, name: "done", maxBytes: c.MaxFileBytes, maxFiles: c.MaxFiles}
	l.refused = &journal{dir: c.Dir, folder: l.folder, name: "refused", maxBytes: c.MaxFileBytes, maxFiles: c.MaxFiles,
		syncEvery: refusalsSynced}
	for _, j := range []*journal{l.done, l.refused} {
		last, err := j.open()
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.last = max(l.last, last)
	}
	if err := l.recover(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close closes the files.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	err := errors.Join(l.done.close(), l.refused.close(), l.folder.Close())
	if l.intents != nil {
		err = errors.Join(err, l.intents.close())
	}
	return err
}

// Record returns once e is on disk, or written if it is a refusal. Concurrent lines share one fsync. Its error wraps
// ErrAudit. The line about an intent of Begin is then written as soon as the log is writable again; other actions must
// not be acknowledged. Refusals above a rate are only counted, and the next line has their number.
func (l *Log) Record(_ context.Context, e Entry) error {
	if l == nil {
		return nil
	}
	e.bound()
	into := l.done
	if e.refused() {
		into = l.refused
	}
	queued, err := l.queue(&e, into)
	if err != nil || queued == nil {
		return err
	}
	if err = into.write(queued); err == nil {
		if into == l.done {
			l.intents.logged(e.Intent)
		} else {
			l.intents.over(e.Intent)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.flying, e.Seq)
	if into == l.done {
		l.broken = err
	}
	if err != nil {
		if e.Intent != "" {
			l.late = append(l.late, e)
		}
		l.suppressed += e.Suppressed // the next line has their number
		return fmt.Errorf("%w: %w", ErrAudit, err)
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// queue numbers the entry and queues its line, or returns nil if the entry is only counted.
func (l *Log) queue(e *Entry, into *journal) (*group, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.refused() && !l.limit.AllowN(l.config.Now(), 1) {
		l.suppressed++
		return nil, nil
	}
	e.Seq, e.Suppressed = l.last+1, l.suppressed
	if e.Time.IsZero() {
		e.Time = l.config.Now().UTC()
	}
	line, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAudit, err)
	}
	l.last, l.suppressed = e.Seq, 0
	l.flying[e.Seq] = true
	return into.add(e.Seq, line), nil
}

// LogQuery selects entries. Empty fields select all.
type LogQuery struct {
	// After is the seq before the first entry.
	After uint64
	Since time.Time
	User  string
	// Type is the type of the thing, or of one of the changed resources. Mesh, Namespace and Name are of that one, too.
	Type, Mesh, Namespace, Name string
	Event, Outcome              string
}

func (q *LogQuery) matches(e *Entry) bool {
	if e.Event == EventDamaged {
		return true // it may have been a match
	}
	if e.Time.Before(q.Since) || q.User != "" && e.User != q.User || q.Event != "" && e.Event != q.Event ||
		q.Outcome != "" && e.Outcome != q.Outcome {
		return false
	}
	if q.about(e.Type, e.Mesh, e.Namespace, e.Name) {
		return true
	}
	return slices.ContainsFunc(e.Changes, func(c ResourceChange) bool {
		return q.about(c.Type, c.Mesh, c.Namespace, c.Name)
	})
}

// about reports whether one thing is what q asks for.
func (q *LogQuery) about(typeName, mesh, namespace, name string) bool {
	for _, one := range [][2]string{{q.Type, typeName}, {q.Mesh, mesh}, {q.Namespace, namespace}, {q.Name, name}} {
		if one[0] != "" && one[0] != one[1] {
			return false
		}
	}
	return true
}

// Changed returns a channel that is closed when the next line is written.
func (l *Log) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Read yields the entries that q selects, oldest first, until yield returns false. It reads files, in time proportional
// to what they have after q.After. Its errors wrap ErrUnreadable.
func (l *Log) Read(q LogQuery, yield func(Entry) bool) error {
	if l == nil {
		return nil
	}
	end := l.Settled()
	err := l.done.inPlace()
	if err == nil && q.After < end {
		err = merge(q.After, q.sieve(), l.done, l.refused, func(e Entry) bool { return e.Seq <= end && (!q.matches(&e) || yield(e)) })
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return nil
}

// Last returns the last entries that q selects, at most n, oldest first. It reads the end of the log, and more of it only
// if too few are there. Its errors wrap ErrUnreadable.
func (l *Log) Last(q LogQuery, n int) (out []Entry, err error) {
	if l == nil {
		return nil, nil
	}
	after, end := q.After, l.Settled()
	for span := uint64(4 * n); ; span *= 8 {
		q.After, out = max(after, end-min(end, span)), nil
		err := l.Read(q, func(e Entry) bool {
			if len(out) == n {
				out = out[1:]
			}
			out = append(out, e)
			return true
		})
		if err != nil || len(out) == n || q.After == after {
			return out, err
		}
	}
}

// Settled returns the seq up to which every line is on disk. A reader that continued after a later one would miss a
// line.
func (l *Log) Settled() uint64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	end := l.last
	for seq := range l.flying {
		end = min(end, seq-1)
	}
	return end
}
