package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/causeway-mesh/causeway/secrets"
)

// TestWhatWasWrittenIsThere: what was saved is there for the next process, however the last one ended; what was not is
// not.
func TestWhatWasWrittenIsThere(t *testing.T) {
	s := newShelf(t)
	b := s.open()
	b.Put(id("a"), []byte("one\ntwo"), s.now.Add(time.Hour))
	b.Put(id("b"), []byte("b"), time.Time{})
	b.Put(id("c"), []byte("c"), time.Time{})
	s.has(b, map[string]string{"a": "one\ntwo", "b": "b", "c": "c"})
	s.saved(b)
	b.Put(id("b"), []byte("b again"), time.Time{})
	b.Delete(id("c"), id("nobody"))
	s.saved(b) // behind the others
	want := map[string]string{"a": "one\ntwo", "b": "b again"}
	s.has(b, want)
	b.Put(id("late"), []byte("never written"), time.Time{})
	b.Delete(id("a"))

	s.has(s.open(), want)
	before := s.file()
	next := s.open()
	next.Close()
	if s.file() != before {
		t.Error("a process to which nothing happened wrote the file")
	}
	next.Put(id("d"), []byte("d"), time.Time{})
	next.Close()
	want["d"] = "d"
	s.has(s.open(), want)
	if n := strings.Count(s.file(), "\n"); n != 1+len(want) {
		t.Errorf("the first write of a process left %d lines, want one for each entry and the first", n)
	}
	if s.log.Len() > 0 {
		t.Errorf("the log says %s", &s.log)
	}
}

// TestNothingIsInTheClear: neither what is kept nor whose it is.
func TestNothingIsInTheClear(t *testing.T) {
	s := newShelf(t)
	b := s.open()
	b.Put(id("backend-of-payments"), []byte("a private key"), time.Time{})
	s.saved(b)
	b.Put(id("frontend"), []byte("a private key"), time.Time{})
	s.saved(b)
	for line := range strings.Lines(s.file()) {
		sealed := decoded(t, line)
		if strings.Contains(s.file(), "private") || bytes.Contains(sealed, []byte("private")) ||
			bytes.Contains(sealed, []byte("payments")) {
			t.Errorf("the file says %s", line)
		}
	}
	info, err := os.Stat(s.path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %o", info.Mode().Perm())
	}
	if _, err := s.box.Open(decoded(t, strings.Split(s.file(), "\n")[1]), "another purpose"); !errors.Is(err,
		secrets.ErrDamaged) {
		t.Errorf("a line opens for another purpose: %v", err)
	}
}

// TestAnotherKey: with another key nothing can be read; the server starts, says so once, and the next write replaces
// what is there.
func TestAnotherKey(t *testing.T) {
	s := newShelf(t)
	b := s.open()
	for i := range 50 {
		b.Put(id(fmt.Sprint(i)), []byte("x"), time.Time{})
	}
	s.saved(b)
	s.box = newBox(t)
	b = s.open()
	s.has(b, map[string]string{})
	if says := s.log.String(); strings.Count(says, "\n") != 1 || !strings.Contains(says, "entries=50 of=50") ||
		!strings.Contains(says, "sealed with another key") {
		t.Errorf("the log says %s", says)
	}
	b.Put(id("a"), []byte("a"), time.Time{})
	s.saved(b)
	s.has(s.open(), map[string]string{"a": "a"})
	if s.log.Len() > 0 {
		t.Errorf("then the log says %s", &s.log)
	}
}

// TestTimeEnds: what has expired is not given, not read, and leaves the file.
func TestTimeEnds(t *testing.T) {
	s := newShelf(t)
	b := s.open()
	b.Put(id("short"), []byte("s"), s.now.Add(time.Hour))
	b.Put(id("long"), []byte("l"), s.now.Add(3*time.Hour))
	b.Put(id("for good"), []byte("g"), time.Time{})
	s.saved(b)
	s.now = s.now.Add(time.Hour)
	want := map[string]string{"long": "l", "for good": "g"}
	s.has(b, want)
	s.has(s.open(), want)
	b = s.open()
	s.now = s.now.Add(2 * time.Hour)
	b.Put(id("new"), []byte("n"), time.Time{})
	s.saved(b)
	if n := strings.Count(s.file(), "\n"); n != 3 {
		t.Errorf("the file has %d lines, want the first, what is for good, and the new", n)
	}
	if n := len(b.entries); n != 2 {
		t.Errorf("%d entries are in memory", n)
	}
}

// TestLimits: of what is over the limits nothing is kept, the log says so once, and what has expired makes room.
func TestLimits(t *testing.T) {
	s := newShelf(t)
	b := s.open()
	b.Put(id("big"), make([]byte, maxEntry), time.Time{})
	s.has(b, map[string]string{})
	big := make([]byte, maxEntry-100)
	for i := range maxTotal/len(big) + 10 {
		b.Put(id(fmt.Sprint(i)), big, s.now.Add(time.Hour))
	}
	if b.total > maxTotal || b.total < maxTotal-len(big) {
		t.Errorf("%d bytes are kept, want just up to %d", b.total, maxTotal)
	}
	if got := testutil.ToFloat64(b.metrics.refused); got < 10 {
		t.Errorf("%v were refused", got)
	}
	if n := strings.Count(s.log.String(), "\n"); n != 1 {
		t.Errorf("the log has %d lines: %s", n, &s.log)
	}
	s.saved(b)
	if got := s.open(); got.total != b.total {
		t.Errorf("%d bytes were read of %d", got.total, b.total)
	}
	b = s.open()
	s.now = s.now.Add(time.Hour)
	for i := range maxEntries + 1 {
		b.Put(id(fmt.Sprint("n", i)), []byte("n"), time.Time{})
	}
	if len(b.entries) != maxEntries {
		t.Errorf("%d entries, want %d", len(b.entries), maxEntries)
	}
	b.Put(id("n0"), []byte("again"), time.Time{}) // in place of one that is there
	if got, _ := b.Get(id("n0")); string(got) != "again" {
		t.Errorf("it is %q", got)
	}
}

// TestFileStaysSmall: an entry that is put again and again does not make the file grow without an end.
func TestFileStaysSmall(t *testing.T) {
	s := newShelf(t)
	b := s.open()
	largest := 0
	for i := range 1500 {
		b.Put(id("a"), bytes.Repeat([]byte{byte(i)}, 2000), time.Time{})
		must(t, b.write(b.take()))
		largest = max(largest, b.size)
	}
	if largest > slack+50_000 || largest < slack/2 {
		t.Errorf("the file grew to %d bytes", largest)
	}
	s.has(s.open(), map[string]string{"a": string(bytes.Repeat([]byte{1499 % 256}, 2000))})
}

// TestNoBook: a nil Cache keeps nothing.
func TestNoBook(t *testing.T) {
	var b *Cache
	b.Put(id("a"), []byte("a"), time.Time{})
	b.Delete(id("a"))
	b.Retain(func(ID) bool { return false })
	if _, ok := b.Get(id("a")); ok || len(b.IDs()) > 0 {
		t.Error("it is there")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	must(t, b.Run(ctx))
	b.Close()
}

// TestRetain drops what is not to be kept, on the disk too.
func TestRetain(t *testing.T) {
	s := newShelf(t)
	b := s.open()
	b.Put(id("a"), []byte("a"), time.Time{})
	b.Put(id("b"), []byte("b"), time.Time{})
	s.saved(b)
	b = s.open()
	b.Retain(func(i ID) bool { return i.Name == "b" })
	s.saved(b)
	s.has(s.open(), map[string]string{"b": "b"})
}
