package server

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDataDir checks that a folder that everybody may write is refused, one that others may read causes a warning, and
// a missing one is created for its owner.
func TestDataDir(t *testing.T) {
	for _, c := range []struct {
		name    string
		dir     os.FileMode
		file    os.FileMode
		refused bool
		warns   string
	}{
		{"its own", 0o700, 0o600, false, ""},
		{"read by others", 0o755, 0o644, false, "others may read"},
		{"written by a group", 0o2770, 0o660, false, "the group"},
		{"written by everybody", 0o777, 0o600, true, ""},
		{"written by everybody, with the sticky bit", 0o777 | os.ModeSticky, 0o600, true, ""},
		{"a file that everybody may write", 0o700, 0o666, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			var log bytes.Buffer
			if err := MakeDataDir(dir, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 || log.Len() > 0 {
				t.Fatalf("made as %v, %v: %s", info.Mode(), err, log.Bytes())
			}
			file := filepath.Join(dir, "secrets.key")
			err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chmod(file, c.file), os.Chmod(dir, c.dir))
			if err != nil {
				t.Fatal(err)
			}
			err = MakeDataDir(dir, slog.New(slog.NewTextHandler(&log, nil)))
			if errors.Is(err, ErrDataDir) != c.refused || err != nil && !strings.Contains(err.Error(), "chmod") {
				t.Errorf("refused: %v", err)
			}
			if !strings.Contains(log.String(), c.warns) || c.warns == "" && log.Len() > 0 {
				t.Errorf("log: %s", log.Bytes())
			}
		})
	}
}
