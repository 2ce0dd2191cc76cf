package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/credential/contexts"
	"github.com/causeway-mesh/causeway/credential/session"
)

// TestSessionThatIsBeingRenewed checks, while another program renews a session, that nobody removes or replaces it, which
// the renewal would undo, and that commands go on with the token that holds.
func TestSessionThatIsBeingRenewed(t *testing.T) {
	t.Parallel()
	home, server := t.TempDir(), (&oddProvider{}).server(t, "")
	config := filepath.Join(home, "causeway", "config.yaml")
	kept := session.Path(config, "prod")
	release, err := session.Hold(t.Context(), kept)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	text := fmt.Sprintf("currentContext: prod\ncontexts: [{name: prod, address: %q, sessionFile: %q}]\n", server, kept)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	save := func() {
		t.Helper()
		now := time.Now()
		s := &session.Session{Server: server, Issuer: "https://127.0.0.1:1", ClientID: "causeway", Subject: "nora", IDToken: "t",
			RefreshToken: "r", Issued: now.Add(-time.Hour), Ends: now.Add(55 * time.Second)}
		if err := s.Save(kept); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(programs(), "causewayctl"), args...) //nolint:gosec // the program under test
		cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+home)
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	for _, args := range [][]string{{"logout"}, {"config", "delete-context", "prod"},
		{"config", "set-context", "prod", "--address", server}} {
		save()
		said, err := run(append(args, "--timeout", "300ms")...)
		if err == nil || !strings.Contains(said, "another causewayctl renews or replaces a session") {
			t.Errorf("%s: %v, %s", args, err, said)
		}
		if _, err := os.Stat(kept); err != nil {
			t.Errorf("%s removes the session, which the renewal would put back", args)
		}
	}
	save()
	if said, err := run("auth", "whoami"); err != nil || !strings.Contains(said, "oidc:nora") {
		t.Errorf("with a token that holds: %v, %s", err, said)
	}
	release()
	if said, err := run("logout"); err != nil || !strings.Contains(said, "signed out of prod") {
		t.Errorf("after the renewal: %v, %s", err, said)
	}
	if _, err := os.Stat(kept); !os.IsNotExist(err) {
		t.Errorf("after logout: %v", err)
	}
}

// TestContextThatChangesDuringSignIn changes how a context recognises its server while a person signs in to it: what
// config set-context said is stored stays, and the person is told to sign in again.
func TestContextThatChangesDuringSignIn(t *testing.T) {
	t.Parallel()
	p, home := startOddProvider(t, oddKey(t)), t.TempDir()
	server := p.server(t, p.URL)
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(programs(), "causewayctl"), args...) //nolint:gosec // the program under test
		cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+home)
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	set := func(args ...string) {
		if said, err := run(append([]string{"config", "set-context", "prod", "--address", server}, args...)...); err != nil {
			t.Errorf("set-context: %v, %s", err, said)
		}
	}
	signIn := func() (string, error) { return run("login", "prod", "--device", "--provider-ca", p.ca) }
	set()
	var once sync.Once
	changes := func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			once.Do(func() { set("--ca", p.ca) })
		}
		return false
	}
	p.change(func() { p.answer = changes })
	if said, err := signIn(); err == nil || !strings.Contains(said, "context prod was changed while you signed in") {
		t.Errorf("%v, %s", err, said)
	}
	config := filepath.Join(home, "causeway", "config.yaml")
	for _, said := range []string{"after the change", "signed in again"} {
		file, err := contexts.Read(config)
		if err != nil {
			t.Fatal(err)
		}
		if prod := file.Find("prod"); prod == nil || prod.CA != p.ca {
			t.Errorf("%s: the context is %+v, want the CA %s", said, prod, p.ca)
		}
		if said, err := signIn(); err != nil {
			t.Errorf("%v, %s", err, said)
		}
	}
}
