package access

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/place"
)

// Intent is an action about to begin, whose line in the audit log follows. Nil means none.
type Intent struct {
	id string
	// after is the seq of the last line before it began. Its own line comes later.
	after uint64
}

// intents is a small file of open intents. A line is added before an action begins, and another once the audit log has
// the line about the outcome. If a log is opened with only the first, it is unknown whether the action was done. Lines
// are written but not synced: they outlive the process, and the audit log has what was acknowledged.
type intents struct {
	path, run string
	busy      place.Busy // tracks how long a line has waited for the disk

	mu   sync.Mutex
	file *os.File          // guarded by mu
	size int64             // guarded by mu
	last uint64            // guarded by mu
	open map[string][]byte // guarded by mu: the lines of open intents
	late []byte            // guarded by mu: lines to write with the next one
	here *place.Place      // guarded by mu: of file; nil until first used
}

// intentLine is a line of the file: an open intent, or the id of a closed one.
type intentLine struct {
	ID    string `json:"id,omitempty"`
	After uint64 `json:"after,omitempty"`
	Entry *Entry `json:"entry,omitempty"`
	Over  string `json:"over,omitempty"`
}

const (
	intentsFile = "intents.jsonl"
	// intentsBytes is the size above which lines of closed intents are dropped.
	intentsBytes = 64 << 10
)

// openIntents opens the file of a folder, and returns the intents that its last process did not end.
func openIntents(dir string, now time.Time) (*intents, []intentLine, error) {
	in := &intents{path: filepath.Join(dir, intentsFile), run: strconv.FormatInt(now.UnixNano(), 36),
		open: map[string][]byte{}}
	f, err := os.OpenFile(in.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("audit log: %w", err)
	}
	in.file = f
	left, err := in.read(f)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("audit log %s: %w", in.path, err), f.Close())
	}
	return in, left, nil
}

// read reads the file. It removes a last line that a crash truncated. Any other unreadable line may have been an
// intent, and is reported as one.
func (in *intents) read(f *os.File) ([]intentLine, error) {
	begun := map[string]intentLine{}
	var order []string
	after := uint64(0)
	lines := bufio.NewReader(f)
	for {
		raw, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		in.size += int64(len(raw))
		var line intentLine
		if json.Unmarshal(raw, &line) != nil {
			line = damagedIntent(in.size, after)
			raw = nil // it is reported once
		}
		if line.Over != "" {
			delete(begun, line.Over)
			delete(in.open, line.Over)
			continue
		}
		if line.Entry != nil {
			after = line.After
			begun[line.ID], in.open[line.ID] = line, raw
			order = append(order, line.ID)
		}
	}
	var open []intentLine
	for _, id := range order {
		if line, ok := begun[id]; ok {
			open = append(open, line)
		}
	}
	return open, f.Truncate(in.size)
}

// damagedIntent represents an unreadable line that ends at an offset in the file and follows an intent that began after
// a seq.
func damagedIntent(end int64, after uint64) intentLine {
	return intentLine{ID: fmt.Sprintf("damaged-%d", end), After: after, Entry: &Entry{
		Event: EventDamaged, Reason: "a line of audit/" + intentsFile +
			" cannot be read: the file is damaged; it may be the only trace of a change that began",
	}}
}

// begin records what is about to be done. If it fails, nothing may be done.
func (in *intents) begin(after uint64, e *Entry) (*Intent, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.last++
	i := &Intent{id: in.run + "-" + strconv.FormatUint(in.last, 36), after: after}
	raw, err := json.Marshal(intentLine{ID: i.id, After: after, Entry: e})
	if err != nil {
		return nil, err
	}
	raw = append(raw, '\n')
	if err := in.stillThere(); err != nil {
		return nil, err
	}
	if err := in.write(append(in.late, raw...)); err != nil {
		return nil, err
	}
	in.open[i.id], in.late = raw, in.late[:0]
	return i, nil
}

// stillThere reports an error if the folder was moved or removed, because lines written there would be lost.
func (in *intents) stillThere() error {
	if in.file == nil {
		return os.ErrClosed
	}
	if in.here == nil {
		here, err := place.Of(in.path, in.file)
		if err != nil {
			return err
		}
		in.here = here
	}
	return in.here.Check()
}

// write appends a whole line, or nothing.
func (in *intents) write(line []byte) error {
	in.busy.Begin()
	defer in.busy.End()
	_, err := in.file.Write(line)
	if err != nil {
		return errors.Join(err, in.file.Truncate(in.size))
	}
	in.size += int64(len(line))
	return nil
}

// hangs returns an error that wraps place.ErrHangs if a line has waited too long for the disk.
func (in *intents) hangs() error {
	if in == nil {
		return nil
	}
	return in.busy.Check()
}

// over closes an intent. If that cannot be written, a restart reports the intent as unknown, unless its line is in the
// log.
func (in *intents) over(id string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if line := in.ended(id); line != nil && in.write(append(in.late, line...)) == nil {
		in.late = in.late[:0]
	}
}

// logged closes an intent whose line is in the log of completed actions, which a start searches. The closing line is
// written with the next intent, or when the file is closed.
func (in *intents) logged(id string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.late = append(in.late, in.ended(id)...)
}

// ended removes an intent and returns the line that closes it, or nil if none is needed. in.mu is held.
func (in *intents) ended(id string) []byte {
	if _, ok := in.open[id]; !ok || in.file == nil {
		return nil
	}
	delete(in.open, id)
	if in.size > intentsBytes && in.compact() == nil {
		in.late = in.late[:0] // those are dropped too
		return nil
	}
	raw, err := json.Marshal(intentLine{Over: id})
	if err != nil {
		return nil
	}
	return append(raw, '\n')
}

// compact drops the lines of closed intents, unless that would drop little.
func (in *intents) compact() error {
	if len(in.open) == 0 {
		err := in.file.Truncate(0)
		if err == nil {
			in.size = 0
		}
		return err
	}
	var kept bytes.Buffer
	for _, line := range in.open {
		kept.Write(line)
	}
	if int64(kept.Len()) > in.size/2 {
		return errors.ErrUnsupported
	}
	next := in.path + ".next"
	f, err := os.OpenFile(next, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(kept.Bytes()); err == nil {
		err = place.Rename(next, in.path)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	_ = in.file.Close()
	in.file, in.here, in.size = f, nil, int64(kept.Len())
	return nil
}

func (in *intents) close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return closeFile(&in.file)
}
