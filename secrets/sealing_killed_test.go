package secrets

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/backend"
)

// sealingKills is how many times the test kills the sealing, each time later.
var sealingKills = flag.Int("sealing-kills", 6, "how often TestSealingThatIsKilled kills; 12 is the long form")

// sealingDir makes the test binary seal the store in a folder and exit.
const sealingDir = "CAUSEWAY_TEST_SEALING_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(sealingDir)
	if dir == "" {
		goleak.VerifyTestMain(m)
	}
	if err := seal(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func seal(dir string) error {
	box, err := OpenBox(Config{Dir: dir, Log: quiet})
	if err != nil {
		return err
	}
	s, err := backend.OpenSealed(context.Background(), storeIn(dir), NewFields(box))
	if err != nil {
		return err
	}
	return s.Close()
}

func storeIn(dir string) backend.Config {
	return backend.Config{Path: filepath.Join(dir, "causeway.db"), Log: quiet}
}

// TestSealingThatIsKilled checks that whenever the first start of this version is killed, the next start leaves no
// plaintext secret in any file and loses nothing.
func TestSealingThatIsKilled(t *testing.T) {
	before := t.TempDir()
	want := inTheClear(t, before)
	open(t, Config{Dir: before}) // creates the key once, so that the store takes most of the time
	took := sealed(t, copied(t, before), 0)
	for i := range *sealingKills {
		dir := copied(t, before)
		sealed(t, dir, took*time.Duration(i+1)/time.Duration(*sealingKills))
		if err := seal(dir); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) < 2 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			if bytes.Contains(fileOf(t, file), []byte("S3cret")) {
				t.Errorf("killed after %s of %s: %s has a secret in the clear", took*time.Duration(i+1)/time.Duration(*sealingKills), took,
					filepath.Base(file))
			}
		}
		if got := specsOf(t, dir); !maps.Equal(got, want) {
			t.Errorf("killed after %d/%d: %d resources, want %d as they were", i+1, *sealingKills, len(got), len(want))
		}
	}
}

// inTheClear creates a store of an older version and returns the specs in it.
func inTheClear(t *testing.T, dir string) map[resources.Key]string {
	t.Helper()
	s, err := backend.Open(t.Context(), storeIn(dir))
	if err != nil {
		t.Fatal(err)
	}
	want := map[resources.Key]string{}
	for i := range 4 {
		var b store.Batch
		for j := range 25 {
			for kind, spec := range sensitive {
				r := made(t, kind, fmt.Sprintf("r-%d-%d", i, j), spec)
				b.Ops = append(b.Ops, store.Op{Put: r})
				want[r.Key] = plain(t, r)
			}
		}
		if _, err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return want
}

// plain returns r's spec with its members in a fixed order.
func plain(t *testing.T, r *resources.Resource) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(r.Spec.JSON(), &v); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// copied returns a copy of a folder.
func copied(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(to, "secrets.key"), 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// sealed seals a store in another process and returns how long it ran. It kills the process after a time, unless that
// is zero.
func sealed(t *testing.T, dir string, after time.Duration) time.Duration {
	t.Helper()
	process := exec.Command("/proc/self/exe") // by its own name, it would be an input of the result, and always a new one
	process.Env = append(os.Environ(), sealingDir+"="+dir)
	var said strings.Builder
	process.Stderr = &said
	begin := time.Now()
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	if after > 0 {
		<-time.After(after)
		_ = process.Process.Kill() // or it has exited
		_ = process.Wait()
		return time.Since(begin)
	}
	if err := process.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	return time.Since(begin)
}

// specsOf opens all sealed secrets in a store.
func specsOf(t *testing.T, dir string) map[resources.Key]string {
	t.Helper()
	fields := NewFields(open(t, Config{Dir: dir}))
	s, err := backend.OpenSealed(t.Context(), storeIn(dir), fields)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	got := map[resources.Key]string{}
	for r := range store.All(fields.Opened(s, nil).Snapshot()) {
		if _, planted := sensitive[r.Type]; planted {
			got[r.Key] = plain(t, r)
		}
	}
	return got
}
