package kubernetes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/kubernetes/images"
)

var servers struct {
	once   sync.Once
	err    error
	bin    string
	loaded sync.Map // by the node's folder
}

// loadServers builds the programs and loads their images, once: as deploy/containers/Containerfile makes them, and under
// the names that the charts have by default.
func (k *kube) loadServers() {
	k.t.Helper()
	servers.once.Do(func() { servers.err = buildServers(context.Background()) })
	must(k.t, servers.err)
	if _, loaded := servers.loaded.LoadOrStore(k.Dir, true); !loaded {
		must(k.t, k.loadImages(context.Background()))
	}
}

func buildServers(ctx context.Context) error {
	if servers.bin = *binFlag; servers.bin != "" {
		return nil
	}
	servers.bin = filepath.Join(scratch, "bin")
	return cluster.Build(ctx, servers.bin)
}

func (k *kube) loadImages(ctx context.Context) error {
	for _, program := range []string{"causeway-global", "causeway-zone"} {
		if err := k.Load(ctx, images.Server(root, servers.bin, program)); err != nil {
			return err
		}
	}
	envoy, err := images.Envoy(ctx, root)
	if err != nil {
		return err
	}
	return k.Load(ctx, envoy)
}

// helm runs helm, which must succeed.
func (k *kube) helm(args ...string) string {
	k.t.Helper()
	out, err := k.tryHelm(args...)
	if err != nil {
		k.t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (k *kube) tryHelm(args ...string) (string, error) {
	return runHelm(k.t.Context(), k.Kubeconfig(), args...)
}

func runHelm(ctx context.Context, kubeconfig string, args ...string) (string, error) {
	helm := filepath.Join(root, ".tools", "bin", "helm")
	if _, err := os.Stat(helm); err != nil {
		return "", fmt.Errorf("no helm: run make tools-deploy (%w)", err)
	}
	if err := look(filepath.Join(root, "deploy", "charts")); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, helm, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HELM_CACHE_HOME="+filepath.Join(scratch, "helm"),
		"HELM_CONFIG_HOME="+filepath.Join(scratch, "helm"), "HELM_DATA_HOME="+filepath.Join(scratch, "helm"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// volumes makes volumes for a namespace: folders of the node, for a storage class that may let them grow.
func (k *kube) volumes(class string, grows bool, claims ...string) {
	k.t.Helper()
	k.apply(fmt.Sprintf(`{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
 "metadata": {"name": %q, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
 "provisioner": "kubernetes.io/no-provisioner", "allowVolumeExpansion": %v, "volumeBindingMode": "WaitForFirstConsumer"}`, class, grows))
	for _, claim := range claims {
		namespace, name, _ := strings.Cut(claim, "/")
		path := filepath.Join(scratch, "volumes", namespace+"-"+name)
		must(k.t, os.MkdirAll(path, 0o700))
		must(k.t, os.Chown(path, nobody, nobody)) // volumes of this kind know no fsGroup
		k.apply(fmt.Sprintf(`{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": %q},
 "spec": {"capacity": {"storage": "16Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": %q,
  "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": %q},
  "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": %q, "name": %q}}}`,
			namespace+"-"+name, class, path, namespace, name))
	}
}

// ready waits until the pods of a StatefulSet are ready.
func (k *kube) ready(namespace, set string) {
	k.t.Helper()
	out, err := k.Kubectl(k.t.Context(), "-n", namespace, "rollout", "status", "statefulset/"+set, "--timeout=120s")
	if err != nil {
		k.t.Fatalf("%s: %v\n%s\n%s", set, err, out, k.story(namespace, set))
	}
}

// story says what happened to the pods of a StatefulSet.
func (k *kube) story(namespace, set string) string {
	ctx := context.WithoutCancel(k.t.Context())
	describe, _ := k.Kubectl(ctx, "-n", namespace, "describe", "pod", set+"-0")
	logs, _ := k.Kubectl(ctx, "-n", namespace, "logs", set+"-0", "--tail=20")
	return describe + logs
}

// ctl runs causewayctl in the first pod of a StatefulSet.
func (k *kube) ctl(namespace, set string, args ...string) (string, error) {
	return k.Kubectl(k.t.Context(), append([]string{"-n", namespace, "exec", set + "-0", "--", "/usr/bin/causewayctl"}, args...)...)
}
