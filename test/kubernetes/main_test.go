package kubernetes

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/kubernetes/node"
)

// patience is how long anything that happens by itself may take. A machine with much else to do needs more.
var patience time.Duration

// root is the repository, scratch a folder for what all tests share.
var root, scratch string

var binFlag = flag.String("bin", "", "folder of causeway-global, causeway-zone and causewayctl; built when empty")

func TestMain(m *testing.M) {
	flag.DurationVar(&patience, "patience", 90*time.Second, "how long anything that happens by itself may take")
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) (status int) {
	var err error
	if root, err = cluster.Root(); err == nil {
		scratch, err = os.MkdirTemp("", "causeway-kubernetes-")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		return 1
	}
	defer os.RemoveAll(scratch)
	defer func() {
		if shared.node != nil {
			if status != 0 {
				fmt.Fprintln(os.Stderr, shared.node.Logs(5))
			}
			if err := shared.node.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, "kubernetes:", err)
				status = 1
			}
		}
	}()
	return m.Run()
}

// shared is the cluster that all tests use, each in namespaces of its own. It starts with the first test that wants it.
var shared struct {
	once sync.Once
	node *node.Node
	err  error
}

// kube is a cluster as one test sees it.
type kube struct {
	*node.Node

	t testing.TB
}

func newKube(t testing.TB) *kube {
	t.Helper()
	shared.once.Do(func() { shared.node, shared.err = startNode(filepath.Join(scratch, "node")) })
	must(t, shared.err)
	return &kube{Node: shared.node, t: t}
}

// ownKube starts a cluster for one test, which changes what others need.
func ownKube(t *testing.T) *kube {
	t.Helper()
	n, err := startNode(filepath.Join(t.TempDir(), "node"))
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(n.Logs(5))
		}
		must(t, n.Stop())
	})
	return &kube{Node: n, t: t}
}

func startNode(dir string) (*node.Node, error) {
	programs := filepath.Join(root, ".tools", "kubernetes")
	if err := look(programs); err != nil && !errors.Is(err, fs.ErrNotExist) { // the start says why it cannot be
		return nil, err
	}
	return node.Start(context.Background(), node.Config{Programs: programs, Dir: dir, Patience: patience})
}

// look lists a folder and those below it. What helm, kubectl and a node read there is unseen by the go command, which so runs a
// test again when a file there has changed.
func look(dir string) error {
	return filepath.WalkDir(dir, func(_ string, _ fs.DirEntry, err error) error { return err })
}

// kubectl runs a command that must succeed.
func (k *kube) kubectl(args ...string) string {
	k.t.Helper()
	out, err := k.Kubectl(k.t.Context(), args...)
	if err != nil {
		k.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// apply applies manifests, which must succeed.
func (k *kube) apply(manifests string, args ...string) string {
	k.t.Helper()
	out, err := k.Apply(k.t.Context(), manifests, args...)
	if err != nil {
		k.t.Fatalf("kubectl apply %s: %v\n%s\n%s", strings.Join(args, " "), err, out, manifests)
	}
	return out
}

// namespace makes a namespace, unless it is there.
func (k *kube) namespace(name string) {
	k.t.Helper()
	k.apply(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "` + name + `"}}`)
}

// eventually waits for a condition.
func (k *kube) eventually(what string, condition func(context.Context) error) {
	k.t.Helper()
	must(k.t, cluster.Until(k.t.Context(), patience, what, condition))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
