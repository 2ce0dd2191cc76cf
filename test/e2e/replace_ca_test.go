package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// says waits until a server's log has the words.
func (m *mesh) says(s *cluster.Server, words, what string) {
	m.t.Helper()
	m.eventually(what, func(context.Context) error {
		if !strings.Contains(s.Log(), words) {
			return errors.New(s.Tail(3))
		}
		return nil
	})
}

// TestReplaceCAOfReplicas checks that one replica replaces the CA in the store, and that another does not start before
// it has accepted the new CA. A global that runs, or has nothing to accept, is left unchanged.
func TestReplaceCAOfReplicas(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, 1, 2, 1)
	first, second, zone := r.globals[0], r.globals[1], r.zones["zone-0"]
	before := caOf(t, first)
	if caOf(t, second) != before {
		t.Fatal("the replicas have not the same CA to begin with")
	}
	settings := func(g *cluster.Server) []string {
		return []string{
			"replace-ca", "--data-dir", g.DataDir, "--store", "etcd", "--etcd-endpoints", strings.Join(r.etcd.Endpoints(), ","),
			"--secrets-key-file", filepath.Join(first.DataDir, "secrets.key"),
		}
	}
	r.must(first.Stop(t.Context()))
	r.must(second.Stop(t.Context()))
	out, err := r.Output(t.Context(), nil, "causeway-global", settings(first)...)
	r.must(err)
	if after := caOf(t, first); after == before || !strings.Contains(string(out), "the old files are now in") {
		t.Errorf("the CA is the old one, or it does not say where that is:\n%s", out)
	}
	if err := second.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "replace-ca --take") {
		t.Errorf("with the old CA it starts, or does not say what to do: %v", err)
	}
	_, err = r.Output(t.Context(), nil, "causeway-global", append(settings(second), "--take")...)
	r.must(err)
	for _, g := range r.globals {
		r.must(g.Start(t.Context()))
	}
	if caOf(t, first) == before || caOf(t, second) != caOf(t, first) {
		t.Error("the replicas have not the same CA in the end")
	}
	join, err := r.JoinString(t.Context(), second, zone.Name())
	r.must(err)
	r.must(zone.Stop(t.Context()))
	_, err = r.Output(t.Context(), strings.NewReader(join), "causeway-zone", "join", "-", "--data-dir", zone.DataDir)
	r.must(err)
	zone.SetArgs()
	r.must(zone.Start(t.Context()))
	r.apply(first, timeout("after", "10s"))
	r.arrives(zone, "after")

	alone, err := r.StartGlobal(t.Context(), cluster.GlobalConfig{Name: "alone"})
	r.must(err)
	held := caOf(t, alone)
	for _, args := range [][]string{{"replace-ca", "--data-dir", alone.DataDir},
		{"replace-ca", "--data-dir", alone.DataDir, "--take"}} {
		if out, err := r.Output(t.Context(), nil, "causeway-global", args...); err == nil || caOf(t, alone) != held {
			t.Errorf("%q of a global that runs: %s", args, out)
		}
	}
	r.must(alone.Stop(t.Context()))
	if _, err := r.Output(t.Context(), nil, "causeway-global", "replace-ca", "--data-dir", alone.DataDir,
		"--take"); err == nil || !strings.Contains(err.Error(), "--store etcd") || caOf(t, alone) != held {
		t.Errorf("--take without replicas: %v", err)
	}
}

// caOf returns the CA in a global's folder.
func caOf(t *testing.T, g *cluster.Server) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(g.DataDir, "kds-tls", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
