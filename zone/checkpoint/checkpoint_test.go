package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/causeway-mesh/causeway/secrets"
)

// shelf is where books are opened one after the other, as processes would.
type shelf struct {
	t    *testing.T
	path string
	box  *secrets.Box
	now  time.Time
	log  bytes.Buffer
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	return &shelf{t: t, path: filepath.Join(t.TempDir(), "holdings.sealed"), box: newBox(t),
		now: time.Unix(2_000_000_000, 0)}
}

func newBox(t *testing.T) *secrets.Box {
	t.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	return box
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *shelf) open() *Cache {
	s.t.Helper()
	s.log.Reset()
	return Open(Config{Path: s.path, Box: s.box, Now: func() time.Time { return s.now },
		Log: slog.New(slog.NewTextHandler(&s.log, nil))})
}

// saved has the book write what it has, as Run would.
func (s *shelf) saved(b *Cache) {
	s.t.Helper()
	must(s.t, b.save())
}

func (s *shelf) file() string {
	s.t.Helper()
	raw, err := os.ReadFile(s.path)
	must(s.t, err)
	return string(raw)
}

func (s *shelf) has(b *Cache, want map[string]string) {
	s.t.Helper()
	got := map[string]string{}
	for i := range b.entries {
		if plain, ok := b.Get(i); ok {
			got[i.Name] = string(plain)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Errorf("there is %v, want %v", got, want)
	}
}

func id(name string) ID { return ID{Kind: "svid", Mesh: "default", Name: name} }

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

// TestDamageCostsWhatItHits: entries that cannot be read are reported and given up, and the others are not.
func TestDamageCostsWhatItHits(t *testing.T) {
	all := map[string]string{"a": "a", "b": "b", "c": "c"}
	without := func(names ...string) map[string]string {
		out := map[string]string{}
		for k, v := range all {
			out[k] = v
		}
		for _, n := range names {
			delete(out, n)
		}
		return out
	}
	for _, c := range []struct {
		name       string
		damage     func(lines []string) string
		want       map[string]string
		unreadable float64
		says       string
	}{
		{"nothing", join, all, 0, ""},
		{"a flipped bit", func(l []string) string { l[2] = flipped(l[2], 200); return join(l) }, without("b"), 1,
			"entries=1 of=3"},
		{"a flipped bit in the heading of a seal", func(l []string) string { l[1] = flipped(l[1], 20); return join(l) },
			without("a"), 1, "entries=1 of=3"},
		{"a letter that is not base64", func(l []string) string { l[2] = "!" + l[2][1:]; return join(l) }, without("b"),
			1, "not an entry"},
		{"two lines that became one", func(l []string) string { return l[0] + l[1] + strings.TrimSuffix(l[2], "\n") + l[3] }, without("b", "c"), 1, "entries=1 of=2"},
		{"a line without an end", func(l []string) string { return l[0] + strings.Repeat("x", 3*maxLine) + "\n" + join(l[1:]) }, all, 1, "not an entry"},
		{"half of the last line, as a crash leaves it", func(l []string) string { return join(l[:3]) + l[3][:20] },
			without("c"), 0, ""},
		{"another first line", func(l []string) string { return "x" + join(l) }, all, 1, "not an entry"},
		{"nothing left", func([]string) string { return "" }, map[string]string{}, 0, ""},
		{"a later format", func(l []string) string { return "causeway-holdings 2\n" + join(l[1:]) },
			map[string]string{}, 1, "format is unknown"},
		{"a hole of zeros", func(l []string) string { return l[0] + strings.Repeat("\x00", 100_000) },
			map[string]string{}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf(t)
			b := s.open()
			for _, name := range []string{"a", "b", "c"} {
				b.Put(id(name), []byte(name), time.Time{})
				s.saved(b)
			}
			must(t, os.WriteFile(s.path, []byte(c.damage(strings.SplitAfter(s.file(), "\n")[:4])), 0o600))
			b = s.open()
			s.has(b, c.want)
			if got := testutil.ToFloat64(b.metrics.unreadable); got != c.unreadable {
				t.Errorf("the metric counts %v, want %v", got, c.unreadable)
			}
			if says := s.log.String(); !strings.Contains(says, c.says) || (c.says == "") != (says == "") ||
				strings.Count(says, "\n") > 1 {
				t.Errorf("the log says %q, want one line with %q", says, c.says)
			}
			b.Put(id("new"), []byte("n"), time.Time{})
			s.saved(b)
			b = s.open()
			c.want["new"] = "n"
			s.has(b, c.want)
			if s.log.Len() > 0 {
				t.Errorf("after a write, the log still says %s", &s.log)
			}
			delete(c.want, "new")
		})
	}
}

func join(lines []string) string { return strings.Join(lines, "") }

// flipped changes a bit of what a line has sealed.
func flipped(line string, at int) string {
	sealed := decodedOf(line)
	sealed[at%len(sealed)] ^= 1
	return encodedOf(sealed) + "\n"
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

// TestDiskThatRefuses: nothing waits for it, it is said once and counted, and what was put is there when it takes
// writes again.
func TestDiskThatRefuses(t *testing.T) {
	s := newShelf(t)
	must(t, os.MkdirAll(s.path, 0o700)) // a folder is where the file goes
	must(t, os.WriteFile(filepath.Join(s.path, "x"), nil, 0o600))
	b := s.open()
	s.log.Reset()
	b.Put(id("a"), []byte("a"), time.Time{})
	for range 3 {
		if b.save() == nil {
			t.Fatal("it could be written")
		}
	}
	s.has(b, map[string]string{"a": "a"})
	if got := testutil.ToFloat64(b.metrics.failures); got != 3 {
		t.Errorf("%v failures are counted", got)
	}
	if n := strings.Count(s.log.String(), "\n"); n != 1 {
		t.Errorf("the log has %d lines: %s", n, &s.log)
	}
	must(t, os.RemoveAll(s.path))
	b.Put(id("b"), []byte("b"), time.Time{})
	s.saved(b)
	s.has(s.open(), map[string]string{"a": "a", "b": "b"})
}

// TestSomebodyElseWrites: a file that is not as it was left is written as a whole, not added to.
func TestSomebodyElseWrites(t *testing.T) {
	s := newShelf(t)
	b := s.open()
	b.Put(id("a"), []byte("a"), time.Time{})
	s.saved(b)
	must(t, os.WriteFile(s.path, []byte("something else, without an end"), 0o600))
	b.Put(id("b"), []byte("b"), time.Time{})
	if b.save() == nil {
		t.Error("it was added to")
	}
	s.saved(b)
	s.has(s.open(), map[string]string{"a": "a", "b": "b"})
}

// TestSealedAnew: with a passphrase each process derives a key of its own, which takes long. A file never holds more
// than two.
func TestSealedAnew(t *testing.T) {
	s := newShelf(t)
	for i := range 4 {
		var err error
		s.box, err = secrets.OpenBox(secrets.Config{Passphrase: "a passphrase of some length"})
		must(t, err)
		b := s.open()
		b.Put(id(fmt.Sprint(i)), []byte("x"), time.Time{})
		s.saved(b)
		b.Put(id("last"), []byte("y"), time.Time{})
		s.saved(b)
		salts := map[string]bool{}
		for n, line := range strings.SplitAfter(s.file(), "\n") {
			if n > 0 && line != "" {
				salts[string(decoded(t, line)[9:25])] = true
			}
		}
		if len(salts) != 1 {
			t.Errorf("after %d processes, lines are sealed under %d keys", i+1, len(salts))
		}
	}
	s.has(s.open(), map[string]string{"0": "x", "1": "x", "2": "x", "3": "x", "last": "y"})
}

// TestRunFolds: what is put at once is written at once, soon, and what is put at the end is written by Close.
func TestRunFolds(t *testing.T) {
	s := newShelf(t)
	b := s.open()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- b.Run(ctx) }()
	for i := range 2000 {
		b.Put(id(fmt.Sprint(i)), []byte("x"), time.Time{})
	}
	for end := time.Now().Add(30 * time.Second); ; {
		if raw, err := os.ReadFile(s.path); err == nil && bytes.Count(raw, []byte("\n")) == 2001 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it is not written")
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	must(t, <-done)
	b.Put(id("last"), []byte("y"), time.Time{})
	b.Close()
	if n := len(s.open().entries); n != 2001 {
		t.Errorf("%d entries, want 2001", n)
	}
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
