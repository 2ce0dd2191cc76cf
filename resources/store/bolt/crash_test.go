package bolt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// The test binary runs itself as another process: childEnv selects what to do, childPath the file.
const (
	childEnv  = "CAUSEWAY_TEST_BOLT_CHILD"
	childPath = "CAUSEWAY_TEST_BOLT_PATH"
)

func child() int {
	run := map[string]func(string) error{"write": writeUntilKilled, "limit": writeOverLimit}[os.Getenv(childEnv)]
	if err := run(os.Getenv(childPath)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func childProcess(what, path string) *exec.Cmd {
	c := exec.Command("/proc/self/exe") // by its own name, it would be an input of the result, and always a new one
	c.Env = append(os.Environ(), childEnv+"="+what, childPath+"="+path)
	c.Stderr = os.Stderr
	return c
}

const crashWriters = 4

// pair is a batch of two resources of one writer that always have the same content.
func pair(writer, content int) store.Batch {
	return store.Batch{Ops: []store.Op{{Put: kilobyte(2*writer, content)}, {Put: kilobyte(2*writer+1, content)}}}
}

// contentOf returns the content of a resource, 0 if there is none.
func contentOf(r *resources.Resource) (n int, err error) {
	if r == nil {
		return 0, nil
	}
	_, err = fmt.Sscanf(string(r.Spec.JSON()), `{"content":%d`, &n)
	return n, err
}

// writeUntilKilled prints `writer content revision` for each batch that was acknowledged.
func writeUntilKilled(path string) error {
	s, err := Open(context.Background(), Config{Path: path, Log: quiet()})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for w := range crashWriters {
		wg.Go(func() {
			content, err := contentOf(s.Snapshot().Get(kilobyte(2*w, 0).Key))
			for err == nil {
				content++
				var c *store.Commit
				if c, err = s.Apply(context.Background(), pair(w, content)); err == nil {
					// One write call per line, so that lines stay whole.
					_, err = fmt.Printf("%d %d %d\n", w, content, c.Revision)
				}
			}
			fmt.Fprintln(os.Stderr, err)
		})
	}
	wg.Wait()
	return errors.New("all writers ended")
}

// TestKill kills a writing process at random moments. All that it acknowledged must be there, batches must be whole,
// and revisions must continue.
func TestKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	var acknowledged [crashWriters]int
	revision := uint64(0)
	for range 20 {
		first := uint64(0)
		for _, line := range killed(t, path) {
			var w, content int
			var r uint64
			if _, err := fmt.Sscanf(line, "%d %d %d", &w, &content, &r); err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			if r <= revision {
				t.Fatalf("revision %d after a restart, but %d was acknowledged before", r, revision)
			}
			first = max(first, r)
			acknowledged[w] = max(acknowledged[w], content)
		}
		revision = max(revision, first)
		s := open(t, Config{Path: path})
		if s.Snapshot().Revision() < revision {
			t.Fatalf("at revision %d, but %d was acknowledged", s.Snapshot().Revision(), revision)
		}
		revision = s.Snapshot().Revision()
		for w, want := range acknowledged {
			// The writer continues with what was written but not acknowledged.
			acknowledged[w] = checkPair(t, s.Snapshot(), w, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func checkPair(t *testing.T, now store.Snapshot, writer, acknowledged int) (content int) {
	t.Helper()
	left, err := contentOf(now.Get(kilobyte(2*writer, 0).Key))
	if err != nil {
		t.Fatal(err)
	}
	right, err := contentOf(now.Get(kilobyte(2*writer+1, 0).Key))
	if err != nil {
		t.Fatal(err)
	}
	// One more than was acknowledged may have been in progress.
	if left != right || left < acknowledged || left > acknowledged+1 {
		t.Fatalf("writer %d: contents %d and %d, acknowledged %d", writer, left, right, acknowledged)
	}
	return left
}

// killed runs the writing process until some time after some writes and returns its output.
func killed(t *testing.T, path string) (lines []string) {
	t.Helper()
	process := childProcess("write", path)
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() {
		delay := time.Duration(rand.IntN(2_000)) * time.Microsecond
		time.AfterFunc(delay, func() { _ = process.Process.Kill() })
	})
	guard := time.AfterFunc(storetest.Deadline, kill)
	defer guard.Stop()
	enough := 1 + rand.IntN(50)
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		if lines = append(lines, scanner.Text()); len(lines) >= enough {
			kill()
		}
	}
	_ = process.Wait() // It was killed.
	if len(lines) < enough {
		t.Fatalf("the process ended after %d writes, before it was killed", len(lines))
	}
	return lines
}

// TestDiskRefuses makes the operating system refuse writes to the file, by a file size limit.
func TestDiskRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	out, err := childProcess("limit", path).Output()
	if err != nil || !strings.Contains(string(out), "all as expected") {
		t.Fatalf("%v: %s", err, out)
	}
	s := open(t, Config{Path: path})
	want := []string{"policy-1", "policy-3"}
	var got []string
	for r := range s.Snapshot().List(store.Query{Type: storetest.Key("").Type}) {
		got = append(got, r.Name)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %v, want %v", got, want)
	}
}

// writeOverLimit writes, fails under each of some limits, and writes again without them.
func writeOverLimit(path string) error {
	// Otherwise the signal would end the process instead of the call returning an error.
	signal.Ignore(syscall.SIGXFSZ)
	ctx := context.Background()
	s, err := Open(ctx, Config{Path: path, Log: quiet()})
	if err != nil {
		return err
	}
	if _, err := s.Apply(ctx, storetest.Put(kilobyte(1, 1))); err != nil {
		return err
	}
	before := s.Snapshot()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	unlimited := limit.Cur
	for _, pages := range []uint64{0, 1, 2} {
		limit.Cur = pages * uint64(os.Getpagesize())
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		for range 3 {
			_, err := s.Apply(ctx, storetest.Put(kilobyte(2, 1)))
			if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, syscall.EFBIG) {
				return fmt.Errorf("under a limit of %d pages: got %w, want ErrUnavailable and EFBIG", pages, err)
			}
			if s.Snapshot() != before {
				return errors.New("readers see something of the failed write")
			}
		}
	}
	limit.Cur = unlimited
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	c, err := s.Apply(ctx, storetest.Put(kilobyte(3, 1)))
	if err != nil {
		return fmt.Errorf("after the limit was lifted: %w", err)
	}
	if c.Revision <= before.Revision()+1 {
		return fmt.Errorf("revision %d was given out again", c.Revision)
	}
	if err := s.Close(); err != nil {
		return err
	}
	fmt.Println("all as expected")
	return nil
}
