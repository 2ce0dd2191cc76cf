package kubernetes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/kubernetes/images"
	"github.com/causeway-mesh/causeway/test/pages"
)

// clash asks for a proxy, and has a port of the proxy's.
const clash = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: clash, namespace: shop}
spec:
  selector: {matchLabels: {app: clash}}
  template:
    metadata: {labels: {app: clash}}
    spec:
      containers: [{name: clash, image: "shop-backend:1.0", ports: [{containerPort: 15001}]}]
`

// TestKubernetesGuides runs the commands of docs/kubernetes as they stand: an operator installs a zone, the owner of a
// service moves it in, looks for troubles and moves it out, and the operator uninstalls.
func TestKubernetesGuides(t *testing.T) {
	k := newKube(t)
	k.loadServers()
	k.loadShop()
	k.wipe()
	k.volumes("folders", true, namespace+"/data-"+zoneSet+"-0")
	t.Cleanup(func() {
		if t.Failed() {
			pods, _ := k.Kubectl(context.Background(), "describe", "pods", "-n", "shop")
			t.Log(k.story(namespace, zoneSet) + pods)
		}
		k.as(t).wipe()
	})
	const operator, owner, troubles = "docs/kubernetes/operator.md", "docs/kubernetes/service-owner.md", "docs/kubernetes/troubleshooting.md"
	for _, section := range []string{"## Install", "## Check", "## Let people in"} {
		k.follow(operator, section)
	}
	whole, err := pages.Read(root, owner, "")
	must(t, err)
	undo, err := pages.Read(root, owner, "## Undo")
	must(t, err)
	k.run(owner, whole[:len(whole)-len(undo)])
	k.apply(clash)
	k.eventually("the ReplicaSet to say why it has no pods", func(ctx context.Context) error {
		return shows(ctx, k, "on which the proxy", "-n", "shop", "describe", "replicaset", "-l", "app=clash")
	})
	k.follow(troubles, "")
	k.kubectl("-n", "shop", "delete", "deployment", "clash")
	k.run(owner, undo)
	k.follow(operator, "## Upgrade")
	k.follow(operator, "## Uninstall")
}

// shows returns an error unless kubectl prints the text.
func shows(ctx context.Context, k *kube, text string, args ...string) error {
	out, err := k.Kubectl(ctx, args...)
	if err == nil && !strings.Contains(out, text) {
		return fmt.Errorf("%q is not in %s", text, out)
	}
	return err
}

// follow runs the commands of one section of a page, or of the whole page.
func (k *kube) follow(page, section string) {
	k.t.Helper()
	commands, err := pages.Read(root, page, section)
	must(k.t, err)
	if len(commands) == 0 {
		k.t.Fatalf("%s %s has no commands", page, section)
	}
	k.run(page, commands)
}

// loadShop loads the images of docs/kubernetes/shop.yaml, and Envoy by the name that the chart has by default.
func (k *kube) loadShop() {
	k.t.Helper()
	ctx := k.t.Context()
	k.loadApp()
	backend := k.appImage()
	backend.Name = "docker.io/library/shop-backend:1.0"
	must(k.t, k.Load(ctx, backend))
	frontend, err := images.Linked(ctx, "docker.io/library/shop-frontend:1.0", "curl", "sleep")
	must(k.t, err)
	must(k.t, k.Load(ctx, frontend))
	envoy, err := images.Envoy(ctx, root)
	must(k.t, err)
	envoy.Name = "docker.io/envoyproxy/envoy:v1.40.0"
	must(k.t, k.Load(ctx, envoy))
}

// wipe removes what the pages install, and their volumes.
func (k *kube) wipe() {
	k.t.Helper()
	ctx := context.WithoutCancel(k.t.Context())
	for _, release := range []string{"zone-1", "global", "causeway-crds"} {
		if out, err := runHelm(ctx, k.Kubeconfig(), "uninstall", release, "--namespace", namespace, "--ignore-not-found", "--wait"); err != nil {
			k.t.Fatalf("%s: %v: %s", release, err, out)
		}
	}
	for _, args := range [][]string{{"namespace", "shop", "team", namespace}, {"pv", namespace + "-data-" + zoneSet + "-0", namespace + "-data-" + globalSet + "-0"}} {
		if out, err := k.Kubectl(ctx, append([]string{"delete", "--ignore-not-found", "--timeout=90s"}, args...)...); err != nil {
			k.t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	must(k.t, os.RemoveAll(filepath.Join(scratch, "volumes")))
}
