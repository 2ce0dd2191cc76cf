package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	c, err := cluster.New(cluster.Config{Bin: programs(), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &signedIn{t: t, programs: c, provider: startOddProvider(t, oddKey(t))}
	s.provider.change(func() { s.provider.answer = s.token })
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

// call is run without faults, in this process: many calls look at what the faults of others left.
func (s *signedIn) call(args ...string) (string, error) {
	s.t.Helper()
	var out bytes.Buffer
	if status := run(append(slices.Clone(args), "--config", s.config, "--timeout", "20s"), strings.NewReader(""), &out, &out); status != 0 {
		return out.String(), fmt.Errorf("exit status %d", status)
	}
	return out.String(), nil
}

// knows checks that the file of contexts has some.
func (s *signedIn) knows(after string, names ...string) {
	s.t.Helper()
	said, err := s.call("config", "get-contexts")
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

// who requests something, which renews the session, and checks that this works, or that the person is told to sign in
// again, which is right only if the provider has given out another refresh token than is kept.
func (s *signedIn) who(after string) {
	s.t.Helper()
	given := fmt.Sprint("r", s.issued.Load())
	kept, err := session.Read(s.kept)
	if err != nil {
		s.t.Errorf("%s: the session is %v", after, err)
		return
	}
	said, err := s.call("auth", "whoami")
	switch {
	case err == nil && strings.Contains(said, "oidc:nora"):
	case kept.RefreshToken == given:
		s.t.Errorf("%s: the session is lost: %v, %s", after, err, said)
	case !strings.Contains(said, "run causewayctl login prod"):
		s.t.Errorf("%s: %v, %s", after, err, said)
	}
}
