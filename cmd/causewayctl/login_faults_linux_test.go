package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/causeway-mesh/causeway/credential/session"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsSessions kills commands that change the files of a person, and makes each of their steps and writes fail once,
// as on a full disk. A file is what it was, or what it was to become. What a command said that it did is done. A session
// is lost only with its refresh token, and then the person is told to sign in again. Nothing keeps a token after logout.
func TestFaultsSessions(t *testing.T) {
	t.Parallel()
	if err := cluster.CanTrace(); err != nil {
		t.Log(err) // which is no failure of the program
		return
	}
	for _, c := range []struct {
		name string
		args []string
		then func(s *signedIn, after string, done bool)
	}{
		{"renewal", []string{"auth", "whoami"}, func(s *signedIn, after string, _ bool) {
			s.knows(after, "prod", "other")
			s.who(after)
		}},
		{"login", []string{"login", "prod", "--device", "--provider-ca", "CA"}, func(s *signedIn, after string, done bool) {
			s.knows(after, "prod", "other")
			s.who(after)
			if kept, err := session.Read(s.kept); done && (err != nil || kept.IDToken == "secret-token") {
				s.t.Errorf("%s: it said that it is done, and the session is %v", after, err)
			}
		}},
		{"logout", []string{"logout"}, func(s *signedIn, after string, done bool) {
			s.knows(after, "prod", "other")
			if left := s.secrets(); done && len(left) > 0 {
				s.t.Errorf("%s: it said that it is done, and %s have tokens", after, left)
			}
			if said, err := s.call("logout"); err != nil || len(s.secrets()) > 0 {
				s.t.Errorf("%s: it cannot be repeated, or leaves %s: %v, %s", after, s.secrets(), err, said)
			}
		}},
		{"set-context", []string{"config", "set-context", "third", "--address", "http://127.0.0.1:2"}, func(s *signedIn, after string, done bool) {
			s.knows(after, "prod", "other")
			if done {
				s.knows(after, "third")
			}
		}},
		{"delete-context", []string{"config", "delete-context", "prod"}, func(s *signedIn, after string, done bool) {
			s.knows(after, "other")
			if left := s.secrets(); done && len(left) > 0 {
				s.t.Errorf("%s: it said that it is done, and %s have tokens", after, left)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSignedIn(t)
			if i := slices.Index(c.args, "CA"); i >= 0 {
				c.args[i] = s.provider.ca
			}
			for _, refuse := range []bool{false, true} {
				if refuse && !cluster.CanRefuse {
					continue
				}
				n, stride := 1, 1
				if testing.Short() {
					stride = 4
				}
				for ; n < 60; n += stride {
					s.begin()
					steps := &cluster.Steps{}
					if steps.KillAt(n, s.dir); refuse {
						steps.RefuseAt(n, s.dir)
					}
					said, err := s.run(steps, c.args...)
					after := fmt.Sprintf("step %d (%s), refused: %t", n, strings.ReplaceAll(steps.Reached(), s.dir, "DIR"), refuse)
					if steps.Reached() == "" && err != nil {
						t.Fatalf("without a fault: %v, %s", err, said)
					}
					c.then(s, after, err == nil)
					if steps.Reached() == "" {
						break
					}
				}
				t.Logf("fewer than %d steps, refused: %t", n+1, refuse)
				if n < 4 || n >= 60 {
					t.Error("so few, or so many, show nothing")
				}
			}
		})
	}
}

// TestSessionsAtOnce has many programs sign in and change contexts of one file at once: what each said is stored.
func TestSessionsAtOnce(t *testing.T) {
	t.Parallel()
	const each = 6
	s := newSignedIn(t)
	s.begin()
	run := func(args ...string) (string, error) {
		said, err := exec.CommandContext(t.Context(), filepath.Join(programs(), "causewayctl"), //nolint:gosec // the program under test
			append(args, "--config", s.config, "--timeout", "60s")...).CombinedOutput()
		return string(said), err
	}
	var all sync.WaitGroup
	for i := range each {
		for _, args := range [][]string{
			{"login", fmt.Sprint("in-", i), "--address", s.server, "--provider-ca", s.provider.ca, "--device"},
			{"config", "set-context", fmt.Sprint("set-", i), "--address", "http://127.0.0.1:1"},
		} {
			all.Go(func() {
				if said, err := run(args...); err != nil {
					t.Errorf("%s: %v, %s", args, err, said)
				}
			})
		}
	}
	all.Wait()
	var names []string
	for i := range each {
		names = append(names, fmt.Sprint("in-", i), fmt.Sprint("set-", i))
	}
	s.knows("all at once", append(names, "prod", "other")...)
	for i := range each {
		if said, err := run("auth", "whoami", "--context", fmt.Sprint("in-", i)); err != nil || !strings.Contains(said, "oidc:nora") {
			t.Errorf("in-%d: %v, %s", i, err, said)
		}
	}
}

// TestRenewalWithoutRoom renews a session where no file can grow: the provider is not asked for another refresh token, which
// could not be kept, and the session is renewed once there is room.
func TestRenewalWithoutRoom(t *testing.T) {
	t.Parallel()
	s := newSignedIn(t)
	s.begin()
	before := s.issued.Load()
	program := filepath.Join(programs(), "causewayctl")
	said, err := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 0 && exec "$0" "$@"`, program, //nolint:gosec // the program under test
		"auth", "whoami", "--config", s.config).CombinedOutput()
	if err == nil || !strings.Contains(string(said), "is not renewed, as the next one cannot be kept") {
		t.Errorf("without room: %v, %s", err, said)
	}
	if s.issued.Load() != before {
		t.Error("the provider gave a refresh token that nobody keeps")
	}
	if said, err := s.call("auth", "whoami"); err != nil {
		t.Errorf("with room: %v, %s", err, said)
	}
}

// TestSessionFileThatIsCut cuts the file of a session at each byte, and fills it with zeros: the person is told to sign in
// again, and that mends it.
func TestSessionFileThatIsCut(t *testing.T) {
	t.Parallel()
	s := newSignedIn(t)
	s.begin()
	whole, err := os.ReadFile(s.kept)
	if err != nil {
		t.Fatal(err)
	}
	for size := 0; size < len(whole)-2; size += max(1, len(whole)/12) {
		for _, content := range [][]byte{whole[:size], make([]byte, len(whole))} {
			if err := os.WriteFile(s.kept, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if said, err := s.call("auth", "whoami"); err == nil || !strings.Contains(err.Error(), "exit status 3") ||
				!strings.Contains(said, "run causewayctl login prod") {
				t.Errorf("of %d bytes %d are left: %v, %s", len(whole), size, err, said)
			}
		}
	}
	if said, err := s.call("login", "prod", "--device", "--provider-ca", s.provider.ca); err != nil {
		t.Fatalf("%v, %s", err, said)
	}
	s.who("signed in again")
	killed := filepath.Join(filepath.Dir(s.kept), ".prod.json.next") // what a renewal has left that was killed
	for path, content := range map[string][]byte{s.kept: whole[:len(whole)/2], killed: whole} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said, err := s.call("logout")
	if err == nil || !strings.Contains(said, "is removed") || len(s.secrets()) > 0 {
		t.Errorf("logout: %v, %s", err, said)
	}
}
