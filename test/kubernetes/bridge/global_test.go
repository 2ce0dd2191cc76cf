package bridge

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

// TestKubernetesGlobal runs a global whose users write in Kubernetes, with two zones elsewhere.
func TestKubernetesGlobal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.global(w.fed()...)
	g.webhooks("Fail")
	first := w.plainZone("zone-1", g.join("zone-1")...)
	second := w.plainZone("zone-2", g.join("zone-2")...)

	w.apply(permission("by-operator", systemName, "Exact"))
	w.kubectl("wait", "--for=condition=Programmed", "--timeout=60s", "mtp", "-n", systemName, "by-operator")
	if got := w.condition("mtp", systemName, "by-operator", "Programmed", "True"); !strings.Contains(got, "acknowledged by 2 of 2 zones") {
		t.Errorf("Programmed says %q", got)
	}
	if got := w.kubectl("get", "mtp", "-n", systemName, "by-operator", "-o", `jsonpath={.metadata.labels.kuma\.io/origin} {.metadata.labels.kuma\.io/policy-role}`); got != "global system" {
		t.Errorf("origin and role are %q", got)
	}
	g.refusesWrites()

	// What a zone's users write is shown here, and is changed there.
	first.put("of-zone-1", "spiffe://a/b")
	name := w.copyOf("of-zone-1", "kuma.io/zone=zone-1")
	out, err := w.tryKubectl(t.Context(), alice, "label", "mtp", "-n", systemName, name, "mine=yes")
	if err == nil || !strings.Contains(out, "lives in zone zone-1") {
		t.Errorf("a copy is changed: %v %s", err, out)
	}
	if out := w.refused(strings.Replace(permission("forward", systemName, "Exact"), `"type"`, `"sort": "x", "type"`, 1)); !strings.Contains(out, "spiffeId.sort: unknown field") ||
		!strings.Contains(out, `The MeshTrafficPermission "forward" is invalid: `) {
		t.Errorf("an unknown field: %s", out)
	}

	// A zone that is away has not got what comes now, and the condition does not say that it has.
	second.Kill()
	w.apply(permission("by-operator", systemName, "Prefix"))
	if got := w.condition("mtp", systemName, "by-operator", "Programmed", "Unknown"); !strings.Contains(got, "acknowledged by 1 of 2 zones") || !strings.Contains(got, "zone-2 offline since ") {
		t.Errorf("Programmed says %q", got)
	}
	second.start()
	w.condition("mtp", systemName, "by-operator", "Programmed", "True")

	// The objects are the truth over a restart.
	g.Kill()
	w.kubectl("delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "causeway-zone")
	w.kubectl("delete", "mtp", "-n", systemName, "by-operator")
	g.start()
	g.lacks("by-operator")
	first.lacks("by-operator")
}

// refusesWrites checks that the HTTP API writes no objects of the cluster.
func (z *zone) refusesWrites() {
	z.w.t.Helper()
	document := `{"type": "MeshTrafficPermission", "mesh": "default", "name": "x", "spec": {"default": {}}}`
	status, text, err := z.call(z.w.t.Context(), http.MethodPut, "/meshes/default/meshtrafficpermissions/x", document)
	if err != nil || status != http.StatusMethodNotAllowed || !strings.Contains(text, "kubectl apply") {
		z.w.t.Errorf("PUT answers %d %v: %s", status, err, text)
	}
	status, text, err = z.call(z.w.t.Context(), http.MethodPost, "/_batch", document)
	if err != nil || status != http.StatusMethodNotAllowed || !strings.Contains(text, "kubectl apply") {
		z.w.t.Errorf("POST answers %d %v: %s", status, err, text)
	}
}

// copyOf waits for the copy of a permission, and returns its name.
func (w *world) copyOf(displayName, more string) (name string) {
	w.t.Helper()
	w.eventually("a copy of "+displayName, func(ctx context.Context) error {
		out, err := w.tryKubectl(ctx, admin, "get", "mtp", "-n", systemName, "-l", "causeway.io/copy=true,kuma.io/display-name="+displayName+","+more,
			"-o", "jsonpath={.items[*].metadata.name}")
		if name = out; err != nil || out == "" {
			return fmt.Errorf("there is none: %w", err)
		}
		return nil
	})
	return name
}

// lacks waits until no permission in the server's store has a name like this.
func (z *zone) lacks(name string) {
	z.w.t.Helper()
	z.w.eventually(z.Name()+" to lack "+name, func(ctx context.Context) error {
		got, err := z.names(ctx)
		if err == nil && strings.Contains(strings.Join(got, " "), name) {
			err = fmt.Errorf("it holds %v", got)
		}
		return err
	})
}

// TestKubernetesStatusIsFolded changes a policy far more often than once a second. Its conditions are written at most once a
// second, as the API server counts, and in the end they are those of the last change.
func TestKubernetesStatusIsFolded(t *testing.T) {
	w := newWorld(t)
	g := w.global(w.fed()...)
	w.plainZone("zone-1", g.join("zone-1")...)
	w.apply(permission("busy", systemName, "Exact"))
	w.condition("mtp", systemName, "busy", "Programmed", "True")

	client, err := apiserver.Connect(apiserver.Config{Kubeconfig: w.kubeconfig(alice), RequestsPerSecond: 20})
	must(t, err)
	before, began, changes := w.statusWrites(), time.Now(), 0
	for time.Since(began) < 8*time.Second {
		_, err := client.Patch(t.Context(), permissions, apiserver.Name{Namespace: systemName, Name: "busy"}, "", fmt.Appendf(nil, "{%s}", specOf(changes)))
		must(t, err)
		changes++
	}
	w.condition("mtp", systemName, "busy", "Programmed", "True")
	lasted := time.Since(began)
	writes := w.statusWrites() - before
	t.Logf("%d changes in %s: %d writes of the status", changes, lasted, writes)
	if most := int(lasted/time.Second) + 1; writes > most || writes == 0 || changes < 3*most {
		t.Errorf("%d writes of the status, want at most one a second, %d, of %d changes", writes, most, changes)
	}
}

// permissions is the kind of MeshTrafficPermissions.
var permissions = apiserver.Kind{Group: "kuma.io", Version: "v1alpha1", Plural: "meshtrafficpermissions",
	Name: "MeshTrafficPermission", Namespaced: true}

// statusWrites counts the writes of the status of permissions, as the API server does.
func (w *world) statusWrites() int {
	w.t.Helper()
	n := 0
	for line := range strings.Lines(w.kubectl("get", "--raw", "/metrics")) {
		if !strings.HasPrefix(line, "apiserver_request_total{") || !strings.Contains(line, `resource="meshtrafficpermissions"`) ||
			!strings.Contains(line, `subresource="status"`) {
			continue
		}
		fields := strings.Fields(line)
		one, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		must(w.t, err)
		n += int(one)
	}
	return n
}

// TestKubernetesGlobalOfAnotherNamespace runs a global in a system namespace that no zone has: what its users write there
// holds in all of them, and what zones write about it leads to it.
func TestKubernetesGlobalOfAnotherNamespace(t *testing.T) {
	const system = "causeway-system"
	w := newWorld(t)
	w.kubectl("create", "namespace", system)
	g := w.global(append(w.fed(), "--system-namespace", system)...)
	g.webhooks("Fail")
	first := w.plainZone("zone-1", g.join("zone-1")...)
	w.plainZone("zone-2", append(g.join("zone-2"), "--system-namespace", "mesh-two")...)

	w.apply(permission("by-operator", system, "Exact"))
	w.apply(fmt.Sprintf(`{"apiVersion": "kuma.io/v1alpha1", "kind": "MeshMultiZoneService", "metadata": {"name": "everywhere", "namespace": %q},
 "spec": {"selector": {"meshService": {"matchLabels": {"app": "backend"}}}, "ports": [{"port": 80, "appProtocol": "http"}]}}`, system))
	for _, policy := range []string{"by-operator"} {
		if got := w.condition("mtp", system, policy, "Programmed", "True"); !strings.Contains(got, "acknowledged by 2 of 2 zones") {
			t.Errorf("Programmed says %q", got)
		}
	}
	if out := w.refused(permission("by-operator", "backend-ns", "Exact")); !strings.Contains(out, "the global has no namespaces but "+system) {
		t.Errorf("a policy of another namespace: %s", out)
	}
	// What a zone writes about the service of the global is shown with the name that the service has in zones.
	status, text, err := first.call(t.Context(), http.MethodPut, "/meshes/default/meshtimeouts/to-everywhere", `{"type": "MeshTimeout", "mesh": "default", "name": "to-everywhere",
 "spec": {"to": [{"targetRef": {"kind": "MeshMultiZoneService", "name": "everywhere"}, "default": {"connectionTimeout": "1s"}}]}}`)
	if err != nil || status >= http.StatusMultipleChoices {
		t.Fatalf("%d %v: %s", status, err, text)
	}
	name := hashing.Name("default", "everywhere", "", system)
	w.eventually("the reference to be "+name, func(ctx context.Context) error {
		out, err := w.tryKubectl(ctx, admin, "get", "mt", "-n", system, "-l", "kuma.io/display-name=to-everywhere", "-o", "jsonpath={.items[*].spec.to[*].targetRef}")
		if err == nil && (!strings.Contains(out, `"`+name+`"`) || !strings.Contains(out, `"`+system+`"`)) {
			err = fmt.Errorf("it is %s", out)
		}
		return err
	})
}
