package checkpoint

import (
	"encoding/base64"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
)

func decoded(t *testing.T, line string) []byte {
	t.Helper()
	if strings.HasPrefix(line, headingPrefix) {
		return nil
	}
	sealed, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(line, "\n"))
	must(t, err)
	return sealed
}

func decodedOf(line string) []byte {
	sealed, _ := base64.StdEncoding.DecodeString(strings.TrimSuffix(line, "\n"))
	return sealed
}

func encodedOf(sealed []byte) string { return base64.StdEncoding.EncodeToString(sealed) }

// inTheClear seals nothing, so that what is inside of lines is fuzzed too.
type inTheClear struct{}

func (inTheClear) Seal(plain []byte, _ string) ([]byte, error)  { return plain, nil }
func (inTheClear) Open(sealed []byte, _ string) ([]byte, error) { return sealed, nil }

// FuzzFile: whatever is in the file, a book opens, within its limits, and what it takes from it can be written and read
// again.
func FuzzFile(f *testing.F) {
	line := func(text string) string { return encodedOf([]byte(text)) + "\n" }
	f.Add(heading + "\n" + line(`{"kind":"svid","mesh":"default","name":"a","until":4000000000}`+"\nx") +
		line(`{"kind":"svid","mesh":"default","name":"a","gone":true}`+"\n"))
	f.Add(heading + "\n" + line("{}\n") + line("null\nabc") + "!!!\n" + line(`{"until":-5}`+"\n"))
	f.Add("causeway-holdings 9\n")
	f.Fuzz(func(t *testing.T, content string) {
		s := newShelf(t)
		s.path = t.TempDir() + "/file"
		must(t, os.WriteFile(s.path, []byte(content), 0o600))
		cfg := Config{Path: s.path, Box: inTheClear{}, Now: func() time.Time { return s.now }, Log: discard()}
		b := Open(cfg)
		if len(b.entries) > maxEntries || b.total > maxTotal {
			t.Fatalf("%d entries, %d bytes", len(b.entries), b.total)
		}
		b.Put(id("new"), []byte("n"), time.Time{})
		must(t, b.save())
		again := Open(cfg)
		if len(again.entries) != len(b.entries) || again.total != b.total {
			t.Fatalf("%d entries were written, and %d read", len(b.entries), len(again.entries))
		}
	})
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
