package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// The listening address of a server determines its local URL.
func TestBeside(t *testing.T) {
	for listens, want := range map[string]string{
		":5681": "https://127.0.0.1:5681", "0.0.0.0:5681": "https://127.0.0.1:5681", "[::]:5681": "https://127.0.0.1:5681",
		"127.0.0.1:15681": "http://127.0.0.1:15681", "localhost:1": "http://localhost:1", "[::1]:1": "http://[::1]:1",
		"192.0.2.1:5681": "https://192.0.2.1:5681", "": "", "nonsense": "",
	} {
		if got := beside(listens); got != want {
			t.Errorf("%q: %q, want %q", listens, got, want)
		}
	}
}

// TestTokenBesideStaysThere calls another server, by its address and by a context: it does not receive the local
// server's token.
func TestTokenBesideStaysThere(t *testing.T) {
	dir := t.TempDir()
	shown := ""
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = r.Header.Get("Authorization")
		http.NotFound(w, r)
	}))
	defer sink.Close()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("admin.token", "ours")
	write("other.token", "other")
	file := write("contexts.yaml", "contexts: [{name: bare, address: '"+sink.URL+"'}, {name: whole, address: '"+sink.URL+"', tokenFile: other.token}]")
	t.Setenv(serverDataEnv, dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	for _, c := range []struct {
		listens, want string
		args          []string
	}{
		{"127.0.0.1:1", "", []string{"--address", sink.URL}},
		{"127.0.0.1:1", "", []string{"--config", file, "--context", "bare"}},
		{"127.0.0.1:1", "Bearer other", []string{"--config", file, "--context", "whole"}},
		{"127.0.0.1:1", "Bearer mine", []string{"--address", sink.URL, "--token", "mine"}},
		{sink.Listener.Addr().String(), "Bearer ours", nil},
		{sink.Listener.Addr().String(), "Bearer ours", []string{"--address", sink.URL}},
	} {
		t.Setenv(serverAPIEnv, c.listens)
		shown = "nothing was asked"
		root := newRoot(&cli{in: os.Stdin, out: io.Discard, errOut: io.Discard, raw: io.Discard})
		root.SetArgs(append([]string{"auth", "whoami"}, c.args...))
		_ = root.Execute() // it fails: only what it sends matters
		if shown != c.want {
			t.Errorf("%s %v: %q, want %q", c.listens, c.args, shown, c.want)
		}
	}
}
