package bridge

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// patience is how long anything that happens by itself may take. A machine with much else to do needs more.
var patience time.Duration

var (
	binFlag = flag.String("bin", "", "folder of causeway-global, causeway-zone and causewayctl; built when empty")
	shared  struct {
		root, bin, dir string
		once           sync.Once // for build
		err            error
		figures        figures // of benchmarks, which run one after another
	}
)

// build builds the programs, once.
func build(t testing.TB) {
	t.Helper()
	shared.once.Do(func() {
		if shared.bin = *binFlag; shared.bin == "" {
			shared.bin = filepath.Join(shared.dir, "bin")
			shared.err = cluster.Build(context.Background(), shared.bin)
		}
	})
	must(t, shared.err)
}

func TestMain(m *testing.M) {
	flag.DurationVar(&patience, "patience", time.Minute, "how long anything that happens by itself may take")
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	var err error
	if shared.root, err = cluster.Root(); err == nil {
		shared.dir, err = os.MkdirTemp("", "causeway-bridge-")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bridge:", err)
		return 1
	}
	defer os.RemoveAll(shared.dir)
	status := m.Run()
	if !shared.figures.judge(os.Stdout) {
		status = 1
	}
	return status
}

// The users of the API server. The zone's own is that of its service account in a cluster.
const (
	admin      = "admin"
	alice      = "alice"
	bob        = "bob"   // edits backend-ns, where a test says so
	carol      = "carol" // is of the group platform
	zoneUser   = "system:serviceaccount:kuma-system:causeway-zone"
	masters    = "system:masters"
	tokenOf    = "token-of-"
	systemName = "kuma-system"
)

// world is an API server, and what a test runs beside it.
type world struct {
	t testing.TB
	*cluster.Cluster

	dir               string
	apiPort, etcdPort int
	hookPort          int
	etcd, api         *cluster.Process
	apiFlags          []string // more of the API server's
}

func newWorld(t testing.TB) *world {
	t.Helper()
	build(t)
	return newWorldOf(t, shared.bin)
}

// newWorldOf is newWorld with the programs of a folder.
func newWorldOf(t testing.TB, bin string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.begin(bin)
	return w
}

// begin starts the API server, with the definitions, namespaces and rights that all tests use.
func (w *world) begin(bin string) {
	w.t.Helper()
	var err error
	w.Cluster, err = cluster.New(cluster.Config{Bin: bin, Envoy: os.Getenv("ENVOY"), Dir: w.dir})
	must(w.t, err)
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.Tails(os.Stderr, 15)
		}
		for _, p := range []*cluster.Process{w.api, w.etcd} {
			if p != nil {
				p.Kill() // etcd calls every other end an error
			}
		}
		must(w.t, w.Close())
	})
	for _, port := range []*int{&w.apiPort, &w.etcdPort, &w.hookPort} {
		*port, err = porttest.Free()
		must(w.t, err)
	}
	w.startAPIServer()
	definitions := filepath.Join(shared.root, "deploy", "crds")
	_, err = os.ReadDir(definitions) // kubectl does, which the go command does not see
	must(w.t, err)
	w.kubectl("apply", "--server-side", "-f", definitions)
	w.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	for _, namespace := range []string{systemName, "backend-ns", "frontend-ns"} {
		w.kubectl("create", "namespace", namespace)
	}
	w.apply(rights)
}

// rights let alice do everything to objects, and the zone what a server needs.
const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: server}
rules:
- {apiGroups: [kuma.io], resources: ["*"], verbs: [get, list, watch, create, update, patch, delete]}
- {apiGroups: [""], resources: [pods, services, nodes, namespaces], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [events], verbs: [create]}
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}
- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
- {nonResourceURLs: [/.well-known/openid-configuration, /openid/v1/jwks], verbs: [get]}
- {apiGroups: [""], resources: [namespaces], verbs: [get, list, watch]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, patch]}
- {apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations], resourceNames: [causeway-zone], verbs: [get, list, watch, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: server}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: server}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: alice}, {kind: ServiceAccount, name: causeway-zone, namespace: kuma-system}]
`

// program is one that make tools-kubernetes builds. It is looked at, so that the go command runs a test again when another is
// there.
func program(name string) string {
	path := filepath.Join(shared.root, ".tools", "kubernetes", name)
	_, _ = os.Stat(path) // the start of it says why it cannot be
	return path
}

func (w *world) startAPIServer() {
	w.t.Helper()
	pki := filepath.Join(w.dir, "pki")
	must(w.t, os.MkdirAll(pki, 0o700))
	tokens := ""
	groups := map[string]string{admin: "," + masters, carol: ",platform"}
	for i, user := range []string{admin, alice, bob, carol, zoneUser} {
		tokens += fmt.Sprintf("%s%s,%s,%d%s\n", tokenOf, user, user, i, groups[user])
	}
	must(w.t, os.WriteFile(filepath.Join(pki, "tokens.csv"), []byte(tokens), 0o600))
	must(w.t, os.WriteFile(filepath.Join(pki, "accounts.key"), keyPEM(w.t), 0o600))
	etcd := fmt.Sprintf("http://127.0.0.1:%d", w.etcdPort)
	peers, err := porttest.Free()
	must(w.t, err)
	peer := fmt.Sprintf("http://127.0.0.1:%d", peers)
	w.etcd, err = w.Command("etcd", program("etcd"), "--data-dir", filepath.Join(w.dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", etcd, "--advertise-client-urls", etcd, "--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer, "--log-level", "error")
	must(w.t, err)
	must(w.t, w.etcd.Start())
	flags := append([]string{"--etcd-servers", etcd,
		"--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", fmt.Sprint(w.apiPort),
		"--cert-dir", pki, "--token-auth-file", filepath.Join(pki, "tokens.csv"), "--authorization-mode", "RBAC",
		"--service-account-key-file", filepath.Join(pki, "accounts.key"), "--service-account-signing-key-file",
		filepath.Join(pki, "accounts.key"), "--service-account-issuer", "https://127.0.0.1",
		"--service-cluster-ip-range", "10.0.0.0/24", "--disable-admission-plugins", "ServiceAccount", "--v", "0"}, w.apiFlags...)
	w.api, err = w.Command("kube-apiserver", program("kube-apiserver"), flags...)
	must(w.t, err)
	must(w.t, w.api.Start())
	w.apiServerReady()
}

func (w *world) apiServerReady() {
	w.t.Helper()
	w.eventually("the API server to be ready", func(ctx context.Context) error {
		_, err := w.tryKubectl(ctx, admin, "get", "--raw", "/readyz")
		return err
	})
}

// kubeconfig is a file by which a user reaches the API server.
func (w *world) kubeconfig(user string) string {
	path := filepath.Join(w.dir, strings.ReplaceAll(user, ":", "-")+".kubeconfig")
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Config", "current-context": "it",
		"contexts": []any{map[string]any{"name": "it", "context": map[string]string{"cluster": "it", "user": "it"}}},
		"clusters": []any{map[string]any{"name": "it", "cluster": map[string]string{
			"server": fmt.Sprintf("https://127.0.0.1:%d", w.apiPort), "certificate-authority": filepath.Join(w.dir, "pki", "apiserver.crt")}}},
		"users": []any{map[string]any{"name": "it", "user": map[string]string{"token": tokenOf + user}}}})
	must(w.t, err)
	must(w.t, os.WriteFile(path, raw, 0o600))
	return path
}

func (w *world) tryKubectl(ctx context.Context, user string, args ...string) (string, error) {
	return w.feedKubectl(ctx, user, "", args...)
}

func (w *world) feedKubectl(ctx context.Context, user, in string, args ...string) (string, error) {
	return run(ctx, in, program("kubectl"), append([]string{"--kubeconfig", w.kubeconfig(user)}, args...)...)
}

// kubectl runs a command as the admin, which must succeed.
func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	out, err := w.tryKubectl(w.t.Context(), admin, args...)
	if err != nil {
		w.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// apply applies manifests, which must succeed.
func (w *world) apply(manifests string) string {
	w.t.Helper()
	out, err := w.feedKubectl(w.t.Context(), admin, manifests, "apply", "-f", "-")
	if err != nil {
		w.t.Fatalf("kubectl apply: %v\n%s\n%s", err, out, manifests)
	}
	return out
}

// refused applies manifests as alice, which must fail, and returns what kubectl prints.
func (w *world) refused(manifests string, args ...string) string {
	w.t.Helper()
	out, err := w.feedKubectl(w.t.Context(), alice, manifests, append([]string{"apply", "-f", "-"}, args...)...)
	if err == nil {
		w.t.Fatalf("it is applied: %s\n%s", out, manifests)
	}
	return out
}

func (w *world) eventually(what string, condition func(context.Context) error) {
	w.t.Helper()
	must(w.t, cluster.Until(w.t.Context(), patience, what, condition))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
