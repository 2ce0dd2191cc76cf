package checkpoint

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/causeway-mesh/causeway/secrets"
)

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
