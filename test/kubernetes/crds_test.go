package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/causeway-mesh/causeway/resources"
)

var definitions sync.Once

// defineTypes applies deploy/crds, once.
func (k *kube) defineTypes() {
	k.t.Helper()
	definitions.Do(k.applyTypes)
}

func (k *kube) applyTypes() {
	k.t.Helper()
	crds := filepath.Join(root, "deploy", "crds")
	must(k.t, look(crds))
	k.kubectl("apply", "--server-side", "--force-conflicts", "-f", crds) // helm may have them
	k.kubectl("wait", "--for=condition=Established", "crd", "-l", "app.kubernetes.io/part-of=causeway", "--timeout=60s")
}

// TestKubernetesDefinitions checks that the API server finds nothing to say against the schemas, and what kubectl
// explain makes of them.
func TestKubernetesDefinitions(t *testing.T) {
	k := newKube(t)
	k.defineTypes()
	bad := k.kubectl("get", "crd", "-o", `jsonpath={range .items[*]}{.metadata.name}{range .status.conditions[*]} {.type}={.status}{end}{"\n"}{end}`)
	for _, line := range strings.Split(strings.TrimSpace(bad), "\n") {
		if strings.HasSuffix(strings.Fields(line)[0], ".kuma.io") && !strings.HasSuffix(line, " NamesAccepted=True Established=True") {
			t.Errorf("the API server says of a definition: %s", line)
		}
	}
	for question, want := range map[string]string{
		"meshtrafficpermission.spec.rules":         "Confs for the requests that the inbounds of the selected proxies receive.",
		"mtp.spec.rules.default.deny.spiffeId":     "Exact compares the whole ID, Prefix its",
		"mesh":                                     "Mesh is the boundary",
		"mt.spec.to.default.http.requestTimeout":   "How long a request may take",
		"meshtrafficpermission.status.conditions":  "Accepted",
		"meshgateway.mesh":                         "in place of the label",
		"meshhttproute.spec.to.rules.default":      "FIELDS",
		"meshtrafficpermission.spec.targetRef":     "Dataplane selects",
		"zone.spec.enabled":                        "FIELD: enabled",
		"hostnamegenerator.spec.template":          "FIELD: template",
		"dataplane.spec.networking.inbound.health": "FIELD: health",
	} {
		if got := k.kubectl("explain", question); !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
			t.Errorf("kubectl explain %s does not say %q:\n%s", question, want, got)
		}
	}
	for plural, namespaced := range map[string]string{"meshes": "false", "zones": "false", "zoneinsights": "false",
		"meshgateways": "false", "meshtrafficpermissions": "true", "meshservices": "true", "dataplanes": "true",
		"hostnamegenerators": "true"} {
		if line := k.kubectl("api-resources", "--api-group=kuma.io", "--namespaced="+namespaced, "-o", "name"); !strings.Contains(
			line, plural+".kuma.io") {
			t.Errorf("no %s among the types with namespaced=%s:\n%s", plural, namespaced, line)
		}
	}
}

// TestKubernetesColumns checks what kubectl get shows of a policy, by its short name and by its categories.
func TestKubernetesColumns(t *testing.T) {
	k := newKube(t)
	k.defineTypes()
	k.kubectl("create", "namespace", "columns")
	defer k.kubectl("delete", "namespace", "columns")
	k.apply(`
apiVersion: kuma.io/v1alpha1
kind: MeshTrafficPermission
metadata:
  name: shown
  namespace: columns
  labels: {kuma.io/mesh: default, kuma.io/origin: zone, kuma.io/policy-role: workload-owner}
spec:
  targetRef: {kind: Dataplane}
  default: {allow: [{spiffeId: {type: Exact, value: "spiffe://a/b"}}]}
`)
	k.kubectl("-n", "columns", "patch", "mtp", "shown", "--subresource=status", "--type=merge", "-p",
		`{"status":{"conditions":[{"type":"Accepted","status":"True","reason":"Valid","message":""}]}}`)
	for _, by := range []string{"mtp", "kuma", "kuma-policies"} {
		got := strings.Fields(k.kubectl("-n", "columns", "get", by, "--no-headers"))
		want := []string{"Dataplane", "workload-owner", "zone", "True"}
		if len(got) < 6 || !strings.HasSuffix(got[0], "shown") || strings.Join(got[1:5], " ") != strings.Join(want, " ") {
			t.Errorf("kubectl get %s shows %q, want the name and then %q", by, got, want)
		}
	}
	// A write of the object does not touch its status, so that who may write policies cannot say what holds.
	k.kubectl("-n", "columns", "patch", "mtp", "shown", "--type=merge", "-p", `{"status":{"conditions":[]}}`)
	if got := k.kubectl("-n", "columns", "get", "mtp", "shown", "-o", "jsonpath={.status.conditions[0].status}"); got != "True" {
		t.Errorf("a write of the object leaves the condition %q, want True", got)
	}
}

// TestKubernetesTakesValidDocuments sends every valid document of package resources to the API server, without any
// webhook: the schemas are not stricter than our servers.
func TestKubernetesTakesValidDocuments(t *testing.T) {
	k := newKube(t)
	k.defineTypes()
	for _, namespace := range []string{"kuma-system", "team"} {
		k.namespace(namespace)
	}
	archive, err := txtar.ParseFile(filepath.Join(root, "resources", "testdata", "valid.txtar"))
	must(t, err)
	sent := 0
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, ".stored") {
			continue
		}
		docs, err := resources.DecodeDocuments(f.Data, resources.DecodeOptions{})
		must(t, err)
		for _, r := range docs {
			if r.Descriptor().APIVersion() != "kuma.io/v1alpha1" || strings.HasPrefix(string(r.Type), "AccessRole") {
				continue // there is no definition of it
			}
			sent++
			out, err := k.Apply(t.Context(), string(asObject(r, "default")), "--dry-run=server", "--server-side")
			if err != nil {
				t.Errorf("%s: %v\n%s", f.Name, err, out)
			}
		}
	}
	if sent < 25 {
		t.Errorf("only %d documents were sent", sent)
	}
}

// asObject returns the Kubernetes form of a resource, in a namespace if the type has one.
func asObject(r *resources.Resource, namespace string) []byte {
	r = r.Clone()
	if r.Namespace == "" && !clusterScoped[r.Type] {
		r.Namespace = namespace
	}
	if clusterScoped[r.Type] {
		r.Namespace = ""
	}
	return resources.AppendKubernetes(nil, r)
}

var clusterScoped = map[resources.Type]bool{resources.TypeMesh: true, resources.TypeZone: true,
	resources.TypeZoneInsight: true, resources.TypeMeshGateway: true}

// TestKubernetesRefusesWithoutUs sends broken documents without any webhook: what the schemas say by themselves.
func TestKubernetesRefusesWithoutUs(t *testing.T) {
	k := newKube(t)
	k.defineTypes()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "refused.txtar"))
	must(t, err)
	for i := 0; i+1 < len(archive.Files); i += 2 {
		f, want := archive.Files[i], strings.TrimSpace(string(archive.Files[i+1].Data))
		// The API server follows a policy of admission a moment after it is made.
		k.eventually(f.Name+" to be refused", func(ctx context.Context) error {
			out, err := k.Apply(ctx, string(f.Data), "--dry-run=server")
			if err == nil {
				return errors.New("it is taken")
			}
			if !strings.Contains(out, want) {
				return fmt.Errorf("%w, want %q in\n%s", err, want, out)
			}
			return nil
		})
	}
	if len(archive.Files) < 20 {
		t.Errorf("only %d files", len(archive.Files))
	}
}

// TestKubernetesKeepsUnknownFields checks that a field that no schema knows arrives at the webhooks, where a server
// refuses it: the API server must not drop it in silence.
func TestKubernetesKeepsUnknownFields(t *testing.T) {
	k := newKube(t)
	k.defineTypes()
	object := `
apiVersion: kuma.io/v1alpha1
kind: MeshTimeout
metadata: {name: misspelled, namespace: default}
spec:
  rules: [{defaults: {}, default: {idleTimeoutt: 1s, http: {requestTimeoutt: 1s}}}]
beside: true
`
	got, err := k.Apply(t.Context(), object, "--dry-run=server", "-o", "json", "--validate=ignore")
	must(t, err)
	for _, field := range []string{`"defaults"`, `"idleTimeoutt"`, `"requestTimeoutt"`, `"beside"`} {
		if !strings.Contains(got, field) { // the annotation with the last applied object has its quotes escaped
			t.Errorf("%s is gone:\n%s", field, got)
		}
	}
}

// TestKubernetesRoles checks who may write: whoever edits a namespace writes policies there, who views it reads them,
// and neither touches what has no namespace.
func TestKubernetesRoles(t *testing.T) {
	k := newKube(t)
	k.defineTypes()
	k.namespace("owned")
	for _, role := range []string{"view", "edit", "admin"} {
		k.apply(fmt.Sprintf(`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": %[1]q, "namespace": "owned"},
 "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": %[1]q},
 "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": %[1]q}]}`, role))
	}
	for _, c := range []struct {
		user, verb, what, namespace string
		may                         bool
	}{
		{"view", "list", "meshtrafficpermissions", "owned", true}, {"view", "create", "meshtrafficpermissions", "owned", false},
		{"edit", "create", "meshtrafficpermissions", "owned", true}, {"edit", "delete", "meshservices", "owned", true},
		{"edit", "create", "meshtrafficpermissions", "default", false}, {"edit", "update", "meshtrafficpermissions --subresource=status", "owned", false},
		{"edit", "create", "meshes", "", false}, {"edit", "create", "dataplaneinsights", "owned", false},
		{"admin", "patch", "meshtimeouts", "owned", true}, {"admin", "delete", "zones", "", false},
	} {
		k.eventually(fmt.Sprint(c), func(ctx context.Context) error { // the roles are added up by a controller
			question := append([]string{"auth", "can-i", c.verb}, strings.Fields(c.what)...)
			out, _ := k.Kubectl(ctx, append(question, "--as", c.user, "-n", c.namespace)...)
			if may := strings.Contains(out, "yes"); may != c.may {
				return fmt.Errorf("%s", out)
			}
			return nil
		})
	}
}

// TestKubernetesDefinitionsByHelm upgrades the definitions by their chart, also where kubectl made them, and checks that
// uninstalling it deletes none: with a definition all of its objects would go.
func TestKubernetesDefinitionsByHelm(t *testing.T) {
	k := newKube(t)
	k.defineTypes()
	k.namespace("keeping")
	k.apply(`{"apiVersion": "kuma.io/v1alpha1", "kind": "MeshTrafficPermission", "metadata": {"name": "kept", "namespace": "keeping"}, "spec": {"default": {}}}`)
	k.kubectl("annotate", "crd", "meshtimeouts.kuma.io", "helm.sh/resource-policy=older", "--overwrite")
	k.helm("upgrade", "--install", "causeway-crds", filepath.Join("deploy", "charts", "causeway-crds"), "--namespace", "keeping", "--take-ownership")
	if got := k.kubectl("get", "crd", "meshtimeouts.kuma.io", "-o", `jsonpath={.metadata.annotations.helm\.sh/resource-policy}`); got != "keep" {
		t.Errorf("after the upgrade a definition says %q, want keep", got)
	}
	k.helm("uninstall", "causeway-crds", "--namespace", "keeping", "--wait")
	k.kubectl("-n", "keeping", "get", "mtp", "kept")
	k.kubectl("apply", "--server-side", "--force-conflicts", "-f", filepath.Join(root, "deploy", "crds")) // the roles went
}
