package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/test/kubernetes/node"
)

// etcdPod is an etcd of one member, and its Service.
const etcdPod = `
apiVersion: v1
kind: Service
metadata: {name: etcd, namespace: on-etcd}
spec: {selector: {app: etcd}, ports: [{port: 2379}]}
---
apiVersion: v1
kind: Pod
metadata: {name: etcd, namespace: on-etcd, labels: {app: etcd}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: etcd
    image: localhost/etcd:dev
    imagePullPolicy: Never
    args: [--data-dir=/tmp/etcd, --listen-client-urls=http://0.0.0.0:2379, --advertise-client-urls=http://etcd.on-etcd.svc:2379]
`

// TestKubernetesGlobalsOnEtcd installs a global of three replicas on etcd, and a zone. The replica that the zone is
// connected to is deleted, then its pods are two and three again, and the volume of the zone is lost: it joins once more.
func TestKubernetesGlobalsOnEtcd(t *testing.T) {
	const set = "g-causeway-global"
	r := prepareReplicas(t, "on-etcd", "z-causeway-zone")
	must(t, r.Load(t.Context(), &node.Image{Name: "localhost/etcd:dev", Entrypoint: "/etcd", Folders: map[string]int{"tmp": 0},
		Files: map[string]string{"etcd": filepath.Join(r.Programs, "etcd")}}))
	r.apply(etcdPod)
	r.kubectl("-n", r.namespace, "wait", "pod/etcd", "--for=condition=Ready", "--timeout=90s")
	g := &globals{replicas: r, global: set}
	change := func(verb string, replicas int) {
		t.Helper()
		r.helm(verb, "g", filepath.Join("deploy", "charts", "causeway-global"), "--namespace", r.namespace, "--set",
			fmt.Sprintf("store.kind=etcd,store.etcd.endpoints={http://etcd.on-etcd.svc:2379},secretsKey.secretName=the-key,persistence.enabled=false,replicas=%d", replicas))
		r.ready(r.namespace, set)
		g.count(replicas)
	}
	change("install", 3)
	r.kubectl("-n", r.namespace, "create", "secret", "generic", "zone-1-join", "--from-literal=join="+g.join("zone-1"))
	r.volumes("folders", true, r.namespace+"/data-"+r.set+"-0")
	t.Cleanup(func() {
		_, _ = r.Kubectl(context.WithoutCancel(t.Context()), "delete", "pv", r.namespace+"-data-"+r.set+"-0", "--wait=false")
	})
	r.install("zone", "z", r.namespace, "join.secretName=zone-1-join")
	r.ready(r.namespace, r.set)
	g.carry("first")

	serves := g.serving()
	r.kubectl("-n", r.namespace, "delete", "pod", serves, "--grace-period=0", "--force")
	g.carry("after-a-loss")
	r.ready(r.namespace, set)
	change("upgrade", 2)
	g.carry("of-two")
	change("upgrade", 3)
	g.carry("of-three")
	g.loseVolume()
	g.carry("on-a-new-volume")
}

// globals are those of a StatefulSet on etcd, and the zone that is connected to one of them.
type globals struct {
	*replicas

	global string
	wrote  []string
}

// ask runs causewayctl in the first global's pod, until it succeeds, and returns what it prints on standard output.
func (g *globals) ask(args ...string) (out string) {
	g.t.Helper()
	g.eventually("causewayctl "+strings.Join(args, " "), func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, filepath.Join(g.Programs, "kubectl"), append([]string{"--kubeconfig", g.Kubeconfig(), "-n", g.namespace,
			"exec", g.global + "-0", "--", "/usr/bin/causewayctl"}, args...)...)
		var said bytes.Buffer
		cmd.Stderr = &said
		raw, err := cmd.Output()
		if out = strings.TrimSpace(string(raw)); err != nil {
			return fmt.Errorf("%w: %s", err, &said)
		}
		return nil
	})
	return out
}

// join returns a join string.
func (g *globals) join(zone string, more ...string) string {
	g.t.Helper()
	return g.ask(append([]string{"zone", "create", zone}, more...)...)
}

// list is what the first global says of all of them.
func (g *globals) list() []api.Replica {
	g.t.Helper()
	var list api.ReplicaList
	must(g.t, json.Unmarshal([]byte(g.ask("get", "replicas", "-o", "json")), &list))
	return list.Items
}

// count waits until there are this many globals.
func (g *globals) count(want int) {
	g.t.Helper()
	g.eventually(fmt.Sprintf("%d globals", want), func(context.Context) error {
		if got := g.list(); len(got) != want {
			return fmt.Errorf("there are %+v", got)
		}
		return nil
	})
}

// serving waits until the zone has a session, and returns the pod of the global that has it.
func (g *globals) serving() (pod string) {
	g.t.Helper()
	g.eventually("a global to serve the zone", func(context.Context) error {
		for _, one := range g.list() {
			if at := strings.LastIndex(one.Instance, "-"); one.Zones == 1 && at > 0 {
				pod = one.Instance[:at]
				return nil
			}
		}
		return errors.New("none does")
	})
	return pod
}

// carry writes a policy on the first global. The zone gets it, and has all of before.
func (g *globals) carry(name string) {
	g.t.Helper()
	g.wrote = append(g.wrote, name)
	g.eventually(name+" to be taken", func(context.Context) error {
		out, err := g.feed(g.global, fmt.Sprintf(`{"type": "MeshTrafficPermission", "mesh": "default", "name": %q,
 "spec": {"targetRef": {"kind": "Mesh"}, "default": {"allow": [{"spiffeId": {"type": "Exact", "value": "spiffe://a/b"}}]}}}`, name))
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	g.eventually("the zone to have "+name, func(context.Context) error { return g.lists(g.set+"-0", g.wrote...) })
}

// loseVolume empties the zone's volume. The zone says that it waits for a join string, and joins by a new one.
func (g *globals) loseVolume() {
	g.t.Helper()
	g.kubectl("-n", g.namespace, "scale", "statefulset", g.set, "--replicas=0")
	g.kubectl("-n", g.namespace, "wait", "--for=delete", "pod/"+g.set+"-0", "--timeout=90s")
	volume := filepath.Join(scratch, "volumes", g.namespace+"-data-"+g.set+"-0")
	content, err := filepath.Glob(filepath.Join(volume, "*"))
	must(g.t, err)
	if len(content) == 0 {
		g.t.Fatal("the volume was empty")
	}
	for _, one := range content {
		must(g.t, os.RemoveAll(one))
	}
	g.kubectl("-n", g.namespace, "scale", "statefulset", g.set, "--replicas=1")
	g.eventually("the zone to say why it does not join", func(ctx context.Context) error {
		out, err := g.Kubectl(ctx, "-n", g.namespace, "logs", g.set+"-0", "--tail=20")
		if err == nil && !strings.Contains(out, "join") {
			err = fmt.Errorf("it says %s", out)
		}
		return err
	})
	g.apply(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "zone-1-join", "namespace": %q}, "stringData": {"join": %q}}`,
		g.namespace, g.join("zone-1", "--rejoin")))
	g.kubectl("-n", g.namespace, "delete", "pod", g.set+"-0")
	g.ready(g.namespace, g.set)
}
