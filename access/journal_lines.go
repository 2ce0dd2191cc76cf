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
	"sync"
	"time"
)

// lastLine returns the seq of the last line and the end of the last whole line. An unreadable line with an end counts
// as whole: something damaged it, and the lines after it are good.
func lastLine(path string) (last uint64, end int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	in, last := bufio.NewReaderSize(f, 64<<10), firstSeq(path)-1
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return last, end, nil
		}
		if err != nil {
			return 0, 0, err
		}
		end += int64(len(line))
		var e struct{ Seq uint64 }
		if json.Unmarshal(line, &e) != nil {
			e.Seq = last + 1
		}
		last = max(last, e.Seq)
	}
}

// lines yields the whole lines of all files with a seq above after, oldest first, until yield returns false. It leaves out
// some of those that the sieve rules out.
func (j *journal) lines(after uint64, of sieve, yield func(Entry) bool) error {
	names, err := j.files()
	if err != nil {
		return err
	}
	for i, path := range names {
		if i+1 < len(names) && firstSeq(names[i+1]) <= after+1 {
			continue
		}
		if more, err := readFile(path, after, of, yield); err != nil || !more {
			return err
		}
	}
	return nil
}

// readFile is lines for one file. It skips what is before its first line.
func readFile(path string, after uint64, of sieve, yield func(Entry) bool) (more bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil // it was removed while we were reading
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	at, seq := lineBefore(f, info.Size(), after)
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return false, err
	}
	in := bufio.NewReaderSize(f, 64<<10)
	before, ruledOut := Entry{Seq: max(seq, firstSeq(path)) - 1}, []byte(nil)
	skipped := sync.OnceValues(func() (int, error) { return linesBefore(f, at) })
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if of.rulesOut(line) {
			ruledOut = line
			continue
		}
		if ruledOut != nil && json.Unmarshal(ruledOut, &before) == nil {
			ruledOut = nil
		}
		var e Entry
		if json.Unmarshal(bytes.TrimSpace(line), &e) != nil || e.Seq == 0 {
			earlier, err := skipped()
			if err != nil {
				return false, err
			}
			e = unreadable(filepath.Base(path), earlier+number, before.Seq+1, before.Time)
		}
		before.Seq, before.Time = e.Seq, e.Time
		if e.Seq > after && !yield(e) {
			return false, nil
		}
	}
}

// unreadable returns the entry that stands for a damaged line, so that readers learn of it. Its time is that of the
// line before.
func unreadable(file string, number int, seq uint64, at time.Time) Entry {
	return Entry{
		Seq: seq, Time: at, Event: EventDamaged, Outcome: Unknown,
		Reason: fmt.Sprintf("line %d of audit/%s cannot be read: the file is damaged; what the line recorded is unknown", number, file),
	}
}
