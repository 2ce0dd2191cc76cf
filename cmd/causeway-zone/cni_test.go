package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/capture/cni"
	"github.com/causeway-mesh/causeway/cmd/settings"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

// TestCNICommand checks status and uninstall, with the exit statuses that a readiness probe relies on.
func TestCNICommand(t *testing.T) {
	dir := t.TempDir()
	bin, conf := filepath.Join(dir, "bin"), filepath.Join(dir, "conf")
	for _, folder := range []string{bin, conf} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const list = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge"}]}`
	path := filepath.Join(conf, "10-pods.conflist")
	if err := os.WriteFile(path, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args, want string, status int) {
		t.Helper()
		root, out := newRoot(), &bytes.Buffer{}
		root.SetArgs(append(strings.Fields(args), "--bin-dir", bin, "--conf-dir", conf, "--except-namespaces", "a,b"))
		root.SetOut(out)
		if got := settings.Execute(root, out); got != status || !strings.Contains(out.String(), want) {
			t.Errorf("%s: status %d, want %d; output %q, want %q", args, got, status, out, want)
		}
	}
	run("cni status", "the plugin's program: ", 1)
	run("cni uninstall", "nothing to remove", 0)
	n := cni.Node{Program: "/proc/self/exe", BinDir: bin, ConfDir: conf, Except: []string{"a", "b"}}
	if _, err := n.Install(); err != nil {
		t.Fatal(err)
	}
	run("cni status", "installed", 0)
	run("cni status --conf-file 20-other.conflist", "no such file", 1)
	run("cni status --except-namespaces c", "lacks the plugin", 1)
	run("cni run --daemonset name", `--daemonset "name": want NAMESPACE/NAME`, 1)
	run("cni uninstall", "removed", 0)
	if left, err := os.ReadFile(path); err != nil || string(left) != list {
		t.Errorf("the list is %s, %v", left, err)
	}
}

// TestUninstalled: the plugin leaves a node only if its DaemonSet is known to be gone, or its account is.
func TestUninstalled(t *testing.T) {
	const there = `{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "kube-system"%s}}`
	for _, c := range []struct {
		name   string
		status int
		body   string
		leaves bool
	}{
		{"there", 200, fmt.Sprintf(there, ""), false},
		{"being deleted", 200, fmt.Sprintf(there, `, "deletionTimestamp": "2026-01-01T00:00:00Z"`), true},
		{"gone", 404, `{"kind": "Status", "code": 404, "reason": "NotFound", "message": "gone"}`, true},
		{"without an account", 401, `{}`, true},
		{"without rights", 403, `{}`, true},
		{"too many requests", 429, `{}`, false},
		{"broken", 500, `{}`, false},
		{"not a DaemonSet", 200, `[]`, false},
	} {
		srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/apis/apps/v1/namespaces/kube-system/daemonsets/agent" {
				t.Errorf("it asks for %s", r.URL.Path)
			}
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		client := clientOf(t, srv)
		if leaves, why := uninstalled(t.Context(), client, "kube-system/agent"); leaves != c.leaves || why == "" {
			t.Errorf("%s: %v, %s", c.name, leaves, why)
		}
		srv.Close()
		if leaves, why := uninstalled(t.Context(), client, "kube-system/agent"); leaves || why == "" {
			t.Errorf("%s, and then away: %v, %s", c.name, leaves, why)
		}
	}
}

func clientOf(t *testing.T, srv *httptest.Server) *apiserver.Client {
	t.Helper()
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	for name, text := range map[string]string{"ca": string(ca), "token": "a-token", "kubeconfig": fmt.Sprintf(`{"current-context": "it",
"contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}], "users": [{"name": "it", "user": {"tokenFile": "token"}}],
"clusters": [{"name": "it", "cluster": {"server": %q, "certificate-authority": "ca"}}]}`, srv.URL)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	client, err := apiserver.Connect(apiserver.Config{Kubeconfig: filepath.Join(dir, "kubeconfig")})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
