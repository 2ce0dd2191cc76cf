package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/pages"
)

// TestKubernetesFromKuma runs the commands of docs/operations/from-kuma-in-kubernetes.md in a cluster with the definitions,
// the webhooks and the objects that Kuma's control plane leaves, and then goes back: every object says all the time what
// it said at first.
func TestKubernetesFromKuma(t *testing.T) {
	const page = "docs/operations/from-kuma-in-kubernetes.md"
	k := ownKube(t)
	k.loadServers()
	k.asOfKuma()
	k.volumes("folders", true, "kuma-system/data-"+zoneSet+"-0")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(k.story("kuma-system", zoneSet))
		}
	})
	before := k.specs()
	t.Setenv("PATH", servers.bin+":"+os.Getenv("PATH"))
	t.Setenv("CAUSEWAY_ADDRESS", k.zoneElsewhere("default"))
	for _, section := range []string{"## Keep a copy, and check it", "## Stop Kuma's control plane", "## Take over", "## Check"} {
		k.follow(page, section)
	}

	for _, object := range []string{"mesh/default", "-n kuma-system mt/mesh-timeout-all-default", "-n shop mtp/web", "-n shop meshhttproute/web",
		"-n kuma-system hostnamegenerator/local-mesh-service", "-n shop dataplane/web-1"} {
		k.kubectl(append([]string{"wait", "--for=condition=Accepted", "--timeout=60s"}, strings.Fields(object)...)...)
	}
	k.has("meshservices", "web") // of the Service
	k.has("mtp", "web")
	k.sameSpecs(before)
	// What others wrote is not this zone's, whatever it looks like.
	k.eventually("a copy of Kuma's global to be refused", func(ctx context.Context) error {
		out, err := k.Apply(ctx, ofAnothersGlobal)
		if err == nil || !strings.Contains(out, "kuma.io/origin") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})

	commands, err := pages.Read(root, page, "## Undo")
	must(t, err)
	last := len(commands) - 1
	k.run(page, commands[:last])
	if left := k.kubectl("get", "kuma", "-A", "-l", "causeway.io/copy", "-o", "name"); strings.Contains(left, "kuma.io") {
		t.Errorf("copies are left: %s", left)
	}
	k.define("apply", "--server-side", "--force-conflicts")
	k.run(page, commands[last:])
	k.sameSpecs(before)
}

// ofAnothersGlobal is a policy as Kuma's global sends it to a zone.
const ofAnothersGlobal = `
apiVersion: kuma.io/v1alpha1
kind: MeshTimeout
metadata: {name: of-global-2x5f, namespace: kuma-system, labels: {kuma.io/mesh: default, kuma.io/origin: global, kuma.io/display-name: of-global}}
spec: {targetRef: {kind: Mesh}, to: [{targetRef: {kind: Mesh}, default: {connectionTimeout: 5s}}]}
`

// asOfKuma makes the cluster one in which Kuma's control plane runs: its webhooks refuse what they are not asked about.
func (k *kube) asOfKuma() {
	k.t.Helper()
	k.define("create")
	k.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	for _, namespace := range []string{"kuma-system", "shop"} {
		k.namespace(namespace)
	}
	objects, err := os.ReadFile(filepath.Join("testdata", "of_kuma.yaml"))
	must(k.t, err)
	k.apply(string(objects))
	k.apply(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kuma-control-plane", "namespace": "kuma-system"},
 "spec": {"selector": {"app": "kuma-control-plane"}, "ports": [{"port": 443}]}}`)
	for kind, name := range map[string]string{"MutatingWebhookConfiguration": "kuma-admission-mutating-webhook-configuration",
		"ValidatingWebhookConfiguration": "kuma-validating-webhook-configuration"} {
		k.apply(fmt.Sprintf(`{"apiVersion": "admissionregistration.k8s.io/v1", "kind": %q, "metadata": {"name": %q},
 "webhooks": [{"name": "validator.kuma-admission.kuma.io", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
  "clientConfig": {"service": {"name": "kuma-control-plane", "namespace": "kuma-system"}},
  "rules": [{"apiGroups": ["kuma.io"], "apiVersions": ["v1alpha1"], "operations": ["CREATE", "UPDATE"], "resources": ["*"]}]}]}`, kind, name))
	}
}

// define defines the types as Kuma's chart does: with the names of ours, most specs without a schema, and no status.
func (k *kube) define(verb ...string) {
	k.t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "deploy", "crds", "kuma.io_*.yaml"))
	must(k.t, err)
	var all []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		must(k.t, err)
		var of struct {
			Metadata struct{ Name string }
			Spec     struct {
				Scope string
				Names json.RawMessage
			}
		}
		must(k.t, yaml.Unmarshal(raw, &of))
		all = append(all, fmt.Sprintf(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
 "metadata": {"name": %q, "annotations": {"controller-gen.kubebuilder.io/version": "v0.20.0"}},
 "spec": {"group": "kuma.io", "scope": %q, "names": %s, "versions": [{"name": "v1alpha1", "served": true, "storage": true,
  "schema": {"openAPIV3Schema": {"type": "object", "properties": {"mesh": {"type": "string"},
   "spec": {"x-kubernetes-preserve-unknown-fields": true}, "status": {"x-kubernetes-preserve-unknown-fields": true}}}}}]}}`,
			of.Metadata.Name, of.Spec.Scope, of.Spec.Names))
	}
	out, err := k.Feed(k.t.Context(), strings.Join(all, "\n"), append(verb, "-f", "-")...)
	if err != nil {
		k.t.Fatalf("%v: %s", err, out)
	}
}

// zoneElsewhere starts a zone of a name on this machine, and returns its address.
func (k *kube) zoneElsewhere(name string) string {
	k.t.Helper()
	c, err := cluster.New(cluster.Config{Bin: servers.bin, Dir: k.t.TempDir()})
	must(k.t, err)
	k.t.Cleanup(func() { must(k.t, c.Close()) })
	z, err := c.StartZone(k.t.Context(), cluster.ZoneConfig{Name: name})
	must(k.t, err)
	must(k.t, z.WaitMesh(k.t.Context(), "default"))
	return z.API.URL()
}

// specs returns the specs of all objects that users of Kuma have, by name.
func (k *kube) specs() map[string]string {
	k.t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(k.kubectl("get", "meshes,meshtimeouts,meshtrafficpermissions,meshhttproutes,hostnamegenerators,dataplanes", "-A",
		"-l", "!causeway.io/copy", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} {.spec}{"\n"}{end}`)) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 3)
		out[strings.Join(words[:2], " ")] = strings.Join(words[2:], " ")
	}
	if len(out) < 6 {
		k.t.Fatalf("there are only %v", slices.Sorted(maps.Keys(out)))
	}
	return out
}

func (k *kube) sameSpecs(before map[string]string) {
	k.t.Helper()
	if now := k.specs(); !maps.Equal(now, before) {
		k.t.Errorf("the objects were\n%v\nand are\n%v", before, now)
	}
}

// has waits until the zone has a resource of a type in the namespace shop.
func (k *kube) has(types, name string) {
	k.t.Helper()
	k.eventually("the zone to have "+types+" "+name, func(context.Context) error {
		out, err := k.ctl("kuma-system", zoneSet, "get", types, "-A", "-o", "name")
		if err == nil && !strings.Contains(out, "_shop_"+name+"_") {
			err = errors.New("it has not")
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}
