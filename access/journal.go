package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/causeway-mesh/causeway/place"
)

// journal is a sequence of files of JSON lines, named NAME-<seq of its first line>.jsonl. When one is full, the next
// begins. When there are too many, the oldest is removed.
type journal struct {
	dir, name string
	maxBytes  int64
	maxFiles  int
	// syncEvery is the shortest interval between syncs to the disk; zero syncs every time.
	syncEvery time.Duration

	mu      sync.Mutex
	pending *group // guarded by mu: nil if nothing waits

	disk sync.Mutex
	file *os.File // guarded by disk
	// folder checks that dir stays in place; here checks file, if there is one.
	folder *place.Place
	here   atomic.Pointer[place.Place]
	size   int64 // guarded by disk
	// busy tracks how long lines have waited for the disk.
	busy place.Busy
	// synced is the time of the last sync to the disk; guarded by disk.
	synced time.Time
}

// group is a set of lines that are written together.
type group struct {
	first uint64 // the seq of the first line
	lines []byte // guarded by mu of the journal until the group is taken

	tried bool  // guarded by disk of the journal
	err   error // guarded by disk of the journal
}

const fileSuffix = ".jsonl"

// open continues the newest file. It removes a last line that a crash truncated, and returns the last seq.
func (j *journal) open() (last uint64, err error) {
	names, err := j.files()
	if err != nil || len(names) == 0 {
		return 0, err
	}
	path := names[len(names)-1]
	last, size, err := lastLine(path)
	if err != nil {
		return 0, fmt.Errorf("audit log %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	if err = f.Truncate(size); err != nil {
		return 0, errors.Join(err, f.Close())
	}
	return last, j.use(path, f, size)
}

// use makes f, opened at path, the current file.
func (j *journal) use(path string, f *os.File, size int64) error {
	here, err := place.Of(path, f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	j.here.Store(here)
	j.file, j.size = f, size
	return nil
}

// inPlace returns nil while readers of the log find the current file. It costs one system call: the path of the file
// leads through the folder, which is checked only while there is no file.
func (j *journal) inPlace() error {
	_, err := j.sizeInPlace()
	return err
}

// sizeInPlace is inPlace, and returns the size of the current file, if there is one.
func (j *journal) sizeInPlace() (int64, error) {
	if here := j.here.Load(); here != nil {
		return here.Size()
	}
	return 0, j.folder.Check()
}

// files lists the journal's files, oldest first. The folder's name is no pattern, and one that cannot be read is not empty.
func (j *journal) files() (paths []string, err error) {
	entries, err := os.ReadDir(j.dir)
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, j.name+"-") && strings.HasSuffix(name, fileSuffix) {
			paths = append(paths, filepath.Join(j.dir, name))
		}
	}
	return paths, err
}

// firstSeq returns the number in a file's name.
func firstSeq(path string) uint64 {
	name := strings.TrimSuffix(filepath.Base(path), fileSuffix)
	n, _ := strconv.ParseUint(name[strings.LastIndexByte(name, '-')+1:], 10, 64)
	return max(n, 1)
}

// add queues a line, whose seq follows that of the previous line. Call write with the returned group.
func (j *journal) add(seq uint64, line []byte) *group {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pending == nil {
		j.pending = &group{first: seq}
	}
	j.pending.lines = append(append(j.pending.lines, line...), '\n')
	return j.pending
}

// write returns once the group is on disk. The first caller of a group writes it for all.
func (j *journal) write(g *group) error {
	j.disk.Lock()
	defer j.disk.Unlock()
	if g.tried {
		return g.err
	}
	j.mu.Lock()
	j.pending = nil // groups are taken whole and in order, so it is g
	j.mu.Unlock()
	g.tried = true
	j.busy.Begin()
	defer j.busy.End()
	g.err = j.append(g.lines, g.first)
	return g.err
}

// append appends lines durably. It undoes a partial write.
func (j *journal) append(lines []byte, first uint64) error {
	size, err := j.sizeInPlace()
	if err != nil {
		return err
	}
	cut, err := j.wasCut(first, size)
	if err != nil {
		return err
	}
	if j.file == nil || j.size >= j.maxBytes || cut != nil {
		if err := j.rotate(first); err != nil {
			return err
		}
	}
	lines = append(cut, lines...)
	_, err = j.file.Write(lines)
	if now := time.Now(); err == nil && now.Sub(j.synced) >= j.syncEvery {
		err, j.synced = j.file.Sync(), now
	}
	if err == nil {
		j.size += int64(len(lines))
		return nil
	}
	if undo := j.file.Truncate(j.size); undo == nil {
		return err
	}
	// The next line starts a new file.
	_ = j.file.Close()
	j.file = nil
	return err
}

// wasCut returns the line that tells of the current file having been cut short by somebody else, as `> FILE` does to make
// room; nil if it was not. What follows belongs in a file of its own: the cut may be in the middle of a line. The line has
// the seq of the one that follows it, so nobody who reads on misses it.
func (j *journal) wasCut(first uint64, size int64) ([]byte, error) {
	if j.file == nil || size >= j.size {
		return nil, nil
	}
	line, err := json.Marshal(Entry{Seq: first, Time: time.Now().UTC(), Event: EventDamaged, Outcome: Unknown,
		Reason: fmt.Sprintf("audit/%s was cut from %d bytes to %d, not by this server: what the lines recorded is unknown",
			filepath.Base(j.file.Name()), j.size, size)})
	return append(line, '\n'), err
}

func (j *journal) rotate(first uint64) error {
	path := filepath.Join(j.dir, fmt.Sprintf("%s-%020d%s", j.name, first, fileSuffix))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if j.file != nil {
		_ = j.file.Close()
	}
	if err := j.use(path, f, 0); err != nil {
		j.file = nil
		return err
	}
	names, err := j.files()
	if err != nil {
		return err
	}
	for len(names) > j.maxFiles {
		if err := os.Remove(names[0]); err != nil {
			return err
		}
		names = names[1:]
	}
	return syncFolder(j.dir)
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (j *journal) close() error {
	j.disk.Lock()
	defer j.disk.Unlock()
	return closeFile(&j.file)
}

// closeFile closes a file. A nil file is already closed.
func closeFile(f **os.File) error {
	if *f == nil {
		return nil
	}
	err := (*f).Close()
	*f = nil
	return err
}
