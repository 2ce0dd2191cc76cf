package access

import (
	"bytes"
	"io"
	"strconv"
)

// stride is how much of a file a reader reads, at most, before the first line that it looks for.
const stride = 16 << 10

// lineBefore returns the offset and the seq of a line near the first one with a seq above after, and before it; or zeros for
// the beginning of the file. The lines of a file are in order. Where one cannot be read, the result is before that one.
func lineBefore(f io.ReaderAt, size int64, after uint64) (at int64, seq uint64) {
	for high := size; high-at > stride; {
		middle := at + (high-at)/2
		start, ok := nextLine(f, middle)
		if !ok {
			return at, seq
		}
		if start >= high { // no line begins between them
			high = middle
			continue
		}
		found, ok := seqAt(f, start)
		switch {
		case !ok:
			return at, seq
		case found > after:
			high = middle
		default:
			at, seq = start, found
		}
	}
	return at, seq
}

// nextLine returns the offset after the first end of a line from an offset on.
func nextLine(f io.ReaderAt, from int64) (start int64, ok bool) {
	chunk := make([]byte, stride)
	n, _ := f.ReadAt(chunk, from)
	end := bytes.IndexByte(chunk[:n], '\n')
	return from + int64(end) + 1, end >= 0
}

// seqAt reads the seq of the line at an offset, with which every line begins.
func seqAt(f io.ReaderAt, start int64) (seq uint64, ok bool) {
	head := make([]byte, 32)
	n, _ := f.ReadAt(head, start)
	digits, ok := bytes.CutPrefix(head[:n], []byte(`{"seq":`))
	digits, _, found := bytes.Cut(digits, []byte(","))
	if !ok || !found {
		return 0, false
	}
	seq, err := strconv.ParseUint(string(digits), 10, 64)
	return seq, err == nil
}

// linesBefore counts the lines before an offset.
func linesBefore(f io.ReaderAt, at int64) (n int, err error) {
	in, chunk := io.NewSectionReader(f, 0, at), make([]byte, 64<<10)
	for {
		read, err := in.Read(chunk)
		n += bytes.Count(chunk[:read], []byte("\n"))
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
