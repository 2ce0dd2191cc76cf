package fsck_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/resources/store/bolt"
	"github.com/causeway-mesh/causeway/resources/store/fsck"
)

// TestDamagedStores flips bits, blanks pages and cuts ends all over a store's file. The check never fails, and never
// reports a file as sound that the server cannot start with; a repaired file is complete; a salvaged one is a readable
// backup.
func TestDamagedStores(t *testing.T) {
	dir := folder(t, 40)
	good, err := os.ReadFile(filepath.Join(dir, backend.File))
	if err != nil {
		t.Fatal(err)
	}
	used := (len(bytes.TrimRight(good, "\x00"))/4096 + 2) * 4096
	good = good[:used] // the rest is room to grow
	random := rand.New(rand.NewPCG(5, 5))
	root, refused, repaired, salvaged := t.TempDir(), 0, 0, 0
	for i := range 100 {
		bad, at := bytes.Clone(good), random.IntN(used)
		switch i % 4 {
		case 0, 1:
			bad[at] ^= 1 << random.IntN(8)
		case 2:
			clear(bad[at/4096*4096 : (at/4096+1)*4096])
		case 3:
			bad = bad[:at]
		}
		here := filepath.Join(root, fmt.Sprint(i))
		file(t, here, backend.File, string(bad), 0o600)
		r := check(t, here)
		if startError(here) == nil {
			if strings.Contains(said(r), "damage") {
				t.Errorf("damage %d: the server starts, and the check says\n%s", i, said(r))
			}
			continue
		}
		refused++
		if len(r.Findings) == 0 {
			t.Fatalf("damage %d: the server does not start, and nothing is wrong", i)
		}
		var rescued bytes.Buffer
		if n, err := r.Salvage(&rescued, archive.Header{Server: "global"}); err == nil {
			salvaged++
			if b, err := archive.Read(&rescued); err != nil || len(b.Resources) != n {
				t.Errorf("damage %d: what was salvaged: %v", i, err)
			}
		} else if !errors.Is(err, fsck.ErrNothingToSalvage) {
			t.Errorf("damage %d: %v", i, err)
		}
		if r.Findings[0].Repairable {
			repaired++
			mended(t, here, r)
		}
	}
	t.Logf("refused %d, repaired %d, salvaged %d", refused, repaired, salvaged)
	if refused < 20 || repaired == 0 || salvaged < 10 {
		t.Error("too little was damaged for a test")
	}
}

// startError returns the error of a server that starts on a copy of the file: this process may still lock the one that
// was judged.
func startError(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, backend.File))
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "copy", backend.File)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, raw, 0o600)); err != nil {
		return err
	}
	s, err := bolt.Open(context.Background(), bolt.Config{Path: path, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return s.Close()
}

func mended(t *testing.T, dir string, r *fsck.Report) {
	t.Helper()
	if err := r.Repair(); err != nil || r.Unrepaired() > 0 {
		t.Fatalf("%d are left, %v", r.Unrepaired(), err)
	}
	s := opened(t, dir)
	defer func() { _ = s.Close() }()
	n := 0
	for range store.All(s.Snapshot()) {
		n++
	}
	if n != 41 || s.Snapshot().Revision() != 41 {
		t.Errorf("the repaired store has %d resources at %d", n, s.Snapshot().Revision())
	}
	if kept, err := filepath.Glob(filepath.Join(dir, backend.File+".damaged-*")); err != nil || len(kept) != 1 {
		t.Errorf("kept beside are %v, %v", kept, err)
	}
}

func TestSalvageOfNothing(t *testing.T) {
	r := check(t, t.TempDir())
	if _, err := r.Salvage(io.Discard, archive.Header{}); !errors.Is(err, fsck.ErrNothingToSalvage) {
		t.Errorf("got %v", err)
	}
}
