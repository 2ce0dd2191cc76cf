package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/credential/session"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// signedIn is the folder of a person who is signed in at a provider that takes each refresh token once.
type signedIn struct {
	t        *testing.T
	provider *oddProvider
	server   string
	programs *cluster.Cluster
	// dir is the folder; config and kept are the files of contexts and of the session of prod.
	dir, config, kept string
	// issued counts the refresh tokens: rN is the only one that is good. steps makes the next run end, or fail, at a step.
	issued atomic.Int64
	runs   int
}

func newSignedIn(t *testing.T) *signedIn {
	t.Helper()
	c, err := cluster.New(cluster.Config{Bin: programs, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &signedIn{t: t, programs: c, provider: startOddProvider(t, oddKey(t))}
	s.provider.answer = s.token
	s.server = s.provider.server(t, s.provider.URL)
	s.dir = filepath.Join(t.TempDir(), "home")
	s.config = filepath.Join(s.dir, "config.yaml")
	s.kept = session.Path(s.config, "prod")
	return s
}

// token refuses a refresh token that was used, and gives the next one.
func (s *signedIn) token(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/token" {
		return false
	}
	_ = r.ParseForm()
	if shown := r.PostForm.Get("refresh_token"); shown != "" && shown != fmt.Sprint("r", s.issued.Load()) {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_grant"})
		return true
	}
	signed, err := s.provider.signed()
	if err != nil {
		s.t.Error(err)
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"id_token": signed, "refresh_token": fmt.Sprint("r", s.issued.Add(1))})
	return true
}

// begin makes the folder anew: prod is the current context, with a session whose token has ended, and other is one more.
func (s *signedIn) begin() {
	s.t.Helper()
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Fatal(err)
	}
	now := time.Now()
	kept := &session.Session{Server: s.server, Issuer: s.provider.URL, ProviderCA: s.provider.ca, ClientID: "causeway", Subject: "nora",
		IDToken: "secret-token", RefreshToken: fmt.Sprint("r", s.issued.Load()), Issued: now.Add(-time.Hour), Ends: now.Add(-time.Second)}
	if err := kept.Save(s.kept); err != nil {
		s.t.Fatal(err)
	}
	text := fmt.Sprintf("currentContext: prod\ncontexts:\n- {name: prod, address: %q, sessionFile: %q}\n- {name: other, address: 'http://127.0.0.1:1'}\n",
		s.server, s.kept)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// run runs a command to its end, or to the step, and returns all that it prints.
func (s *signedIn) run(steps *cluster.Steps, args ...string) (string, error) {
	s.t.Helper()
	s.runs++
	p, err := s.programs.Command(fmt.Sprint("run-", s.runs), "causewayctl", append(slices.Clone(args), "--config", s.config, "--timeout", "20s")...)
	if err != nil {
		s.t.Fatal(err)
	}
	p.Trace(steps)
	if err := p.Start(); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	err = p.Wait(ctx)
	return p.Log(), err
}

// knows checks that the file of contexts has some.
func (s *signedIn) knows(after string, names ...string) {
	s.t.Helper()
	said, err := s.run(nil, "config", "get-contexts")
	for _, name := range names {
		if err != nil || !strings.Contains(said, name+" ") {
			s.t.Errorf("%s: of %s: %v, %s", after, name, err, said)
		}
	}
}

// secrets returns the files that have a token.
func (s *signedIn) secrets() (found []string) {
	s.t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), "oken\": \"") {
			found = append(found, path)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return found
}

// who asks for something, which renews the session, and checks that this works, or that the person is told to sign in
// again, which is right only if the provider has given out another refresh token than is kept.
func (s *signedIn) who(after string) {
	s.t.Helper()
	given := fmt.Sprint("r", s.issued.Load())
	kept, err := session.Read(s.kept)
	if err != nil {
		s.t.Errorf("%s: the session is %v", after, err)
		return
	}
	said, err := s.run(nil, "auth", "whoami")
	switch {
	case err == nil && strings.Contains(said, "oidc:nora"):
	case kept.RefreshToken == given:
		s.t.Errorf("%s: the session is lost: %v, %s", after, err, said)
	case !strings.Contains(said, "run causewayctl login prod"):
		s.t.Errorf("%s: %v, %s", after, err, said)
	}
}

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
			if said, err := s.run(nil, "logout"); err != nil || len(s.secrets()) > 0 {
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
		said, err := exec.CommandContext(t.Context(), filepath.Join(programs, "causewayctl"), //nolint:gosec // the program under test
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
	program := filepath.Join(programs, "causewayctl")
	said, err := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 0 && exec "$0" "$@"`, program, //nolint:gosec // the program under test
		"auth", "whoami", "--config", s.config).CombinedOutput()
	if err == nil || !strings.Contains(string(said), "is not renewed, as the next one cannot be kept") {
		t.Errorf("without room: %v, %s", err, said)
	}
	if s.issued.Load() != before {
		t.Error("the provider gave a refresh token that nobody keeps")
	}
	if said, err := s.run(nil, "auth", "whoami"); err != nil {
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
			if said, err := s.run(nil, "auth", "whoami"); err == nil || !strings.Contains(err.Error(), "exit status 3") ||
				!strings.Contains(said, "run causewayctl login prod") {
				t.Errorf("of %d bytes %d are left: %v, %s", len(whole), size, err, said)
			}
		}
	}
	if said, err := s.run(nil, "login", "prod", "--device", "--provider-ca", s.provider.ca); err != nil {
		t.Fatalf("%v, %s", err, said)
	}
	s.who("signed in again")
	killed := filepath.Join(filepath.Dir(s.kept), ".prod.json.next") // what a renewal has left that was killed
	for path, content := range map[string][]byte{s.kept: whole[:len(whole)/2], killed: whole} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said, err := s.run(nil, "logout")
	if err == nil || !strings.Contains(said, "is removed") || len(s.secrets()) > 0 {
		t.Errorf("logout: %v, %s", err, said)
	}
}
