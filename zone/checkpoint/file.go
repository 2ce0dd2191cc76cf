package checkpoint

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// The file has a first line with its format, followed by a line per entry in base64: a sealed JSON heading, a line
// break, and the entry. The last line of an entry counts. A truncated or modified line loses only that entry.
const (
	heading = "causeway-holdings 1"
	// headingPrefix starts the heading of every format version.
	headingPrefix = "causeway-holdings "
	// purpose binds the sealed lines to this use.
	purpose = "proxy-holdings"
	// maxLine and maxFile limit what is read, in bytes.
	maxLine = 16 << 10
	maxFile = 64 << 20
)

// head is the sealed heading of an entry.
type head struct {
	ID
	// Until is the expiry in Unix seconds; zero means never.
	Until int64 `json:"until,omitempty"`
	// Gone means that the entry was deleted.
	Gone bool `json:"gone,omitempty"`
}

// found is the content of a file.
type found struct {
	entries map[ID]*entry
	// lines counts all lines, bad those that cannot be read; err is the error of the first bad line.
	lines, bad int
	err        error
}

// readFile reads the file. It ignores an unterminated last line: the process ended while it wrote that line.
func readFile(cfg *Config) (found, error) {
	out := found{entries: map[ID]*entry{}}
	f, err := os.Open(cfg.Path)
	if err != nil {
		return out, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() > maxFile {
		return out, errors.Join(err, fmt.Errorf("it has more than %d bytes, or cannot be measured", maxFile))
	}
	r := bufio.NewReaderSize(f, maxLine)
	switch first, err := readLine(r); {
	case errors.Is(err, io.EOF):
		return out, nil
	case err != nil && !errors.Is(err, errFormat):
		return out, err
	case string(first) == heading:
	case bytes.HasPrefix(first, []byte(headingPrefix)):
		return out, fmt.Errorf("%w: %.40q", errFuture, first)
	default:
		out.add(cfg, nil, errFormat)
	}
	for {
		line, err := readLine(r)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil && !errors.Is(err, errFormat) {
			return out, err
		}
		out.add(cfg, line, err)
	}
}

// readLine returns the next line without its terminator. It returns errFormat if the line is too long, and io.EOF if
// there is no further complete line. The line is valid until the next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return bytes.TrimSuffix(line, []byte("\n")), err
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	if err != nil {
		return nil, err
	}
	return nil, errFormat
}

func (f *found) add(cfg *Config, line []byte, err error) {
	f.lines++
	var h head
	var e *entry
	if err == nil {
		line = bytes.Clone(line)
		h, e, err = cfg.readLine(line)
	}
	switch {
	case err != nil:
		if f.bad++; f.bad == 1 {
			f.err = err
		}
	case h.Gone:
		delete(f.entries, h.ID)
	default:
		e.plain, e.line, e.before = nil, line, true
		f.entries[h.ID] = e
	}
}

// readLine decodes a line and opens its seal.
func (c *Config) readLine(line []byte) (head, *entry, error) {
	var h head
	sealed, err := base64.StdEncoding.AppendDecode(nil, line)
	if err != nil {
		return h, nil, errFormat
	}
	all, err := c.Box.Open(sealed, purpose)
	if err != nil {
		return h, nil, err
	}
	before, plain, ok := bytes.Cut(all, []byte("\n"))
	if !ok || json.Unmarshal(before, &h) != nil || len(plain) > maxEntry {
		return h, nil, errFormat
	}
	e := &entry{plain: plain, size: len(plain)}
	if h.Until != 0 {
		e.until = time.Unix(h.Until, 0)
	}
	return h, e, nil
}

// appendLine appends the line of an entry to out. A nil entry marks a deletion.
func (c *Config) appendLine(out []byte, id ID, e *entry) ([]byte, error) {
	h := head{ID: id, Gone: e == nil}
	if e != nil && !e.until.IsZero() {
		h.Until = e.until.Unix()
	}
	all, err := json.Marshal(h)
	if err != nil {
		return out, err
	}
	all = append(all, '\n')
	if e != nil {
		all = append(all, e.plain...)
	}
	sealed, err := c.Box.Seal(all, purpose)
	if err != nil {
		return out, err
	}
	return append(base64.StdEncoding.AppendEncode(out, sealed), '\n'), nil
}
