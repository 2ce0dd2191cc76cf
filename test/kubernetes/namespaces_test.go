package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// leaving is the namespace that TestKubernetesNamespaces deletes, and staying one beside it.
const leaving, staying = "leaving", "staying"

// TestKubernetesNamespaces deletes namespaces with policies in them, which the controller of namespaces empties: while the
// server is there and while it is away, and makes them again at once, with another UID. The mesh has what the new ones
// have. In the end it deletes the server's own namespace.
func TestKubernetesNamespaces(t *testing.T) {
	r := prepareReplicas(t, "leaving-system", "n-causeway-zone")
	r.volumes("folders", true, r.namespace+"/data-"+r.set+"-0")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_, _ = r.Kubectl(ctx, "delete", "namespace", leaving, staying, "--ignore-not-found", "--timeout=120s")
		_, _ = r.Kubectl(ctx, "delete", "pv", r.namespace+"-data-"+r.set+"-0", "--wait=false")
	})
	r.install("zone", "n", r.namespace, "zone=zone-1", "kubernetes.enabled=true")
	r.ready(r.namespace, r.set)
	n := &namespaces{replicas: r}
	n.begin(staying, "first")
	n.begin(leaving, "first")

	t.Run("while the server is there", func(t *testing.T) { n.as(t).checkThere() })
	t.Run("while the server is away", func(t *testing.T) { n.as(t).checkAway() })
	t.Run("that of the server", func(t *testing.T) { n.as(t).checkOwn() })
}

// namespaces are those of users, and the zone that follows them.
type namespaces struct{ *replicas }

func (n *namespaces) as(t *testing.T) *namespaces { return &namespaces{n.replicas.as(t)} }

// begin makes a namespace with policies and a Service in the mesh, and returns its UID once the zone has them.
func (n *namespaces) begin(name, identity string) string {
	n.t.Helper()
	n.eventually("namespace "+name+" to be taken", func(ctx context.Context) error {
		out, err := n.Apply(ctx, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: %[1]s, labels: {kuma.io/mesh: default}}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080, appProtocol: http}]}
---
apiVersion: kuma.io/v1alpha1
kind: MeshTrafficPermission
metadata: {name: one, namespace: %[1]s}
spec: {default: {allow: [{spiffeId: {type: Exact, value: "spiffe://%[2]s/one"}}]}}
---
apiVersion: kuma.io/v1alpha1
kind: MeshTrafficPermission
metadata: {name: two, namespace: %[1]s}
spec: {default: {allow: [{spiffeId: {type: Exact, value: "spiffe://%[2]s/two"}}]}}
---
apiVersion: kuma.io/v1alpha1
kind: MeshTimeout
metadata: {name: one, namespace: %[1]s}
spec: {to: [{targetRef: {kind: Mesh}, default: {connectionTimeout: 2s}}]}
`, name, identity))
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	n.kubectl("-n", name, "wait", "--for=condition=Programmed", "mtp/one", "mtp/two", "mt/one", "--timeout=60s")
	n.has(name, "web", "spiffe://"+identity+"/one", "spiffe://"+identity+"/two", "one")
	return n.kubectl("get", "namespace", name, "-o", "jsonpath={.metadata.uid}")
}

// has waits until the zone has these services, identities of permissions and timeouts of a namespace, and no others.
func (n *namespaces) has(namespace string, want ...string) {
	n.t.Helper()
	slices.Sort(want)
	n.eventually(fmt.Sprintf("the zone to have %v of %s", want, namespace), func(context.Context) error {
		var got []string
		for _, types := range []string{"meshservices", "mtp", "mt"} {
			out, err := n.ctlOut("get", types, "-A", "-o", "json")
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			found, err := namesIn(out, namespace)
			if err != nil {
				return err
			}
			got = append(got, found...)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
}

// namesIn returns what a list has of a namespace: the identities of permissions, the names of everything else.
func namesIn(list, namespace string) ([]string, error) {
	var all struct {
		Items []struct {
			Type, Name, Namespace string
			Spec                  json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(list), &all); err != nil {
		return nil, fmt.Errorf("%w: %s", err, list)
	}
	var out []string
	for _, one := range all.Items {
		if one.Namespace != namespace {
			continue
		}
		if _, rest, ok := strings.Cut(string(one.Spec), `"spiffe://`); ok && one.Type == "MeshTrafficPermission" {
			identity, _, _ := strings.Cut(rest, `"`)
			out = append(out, "spiffe://"+identity)
			continue
		}
		out = append(out, one.Name)
	}
	return out, nil
}

// ctlOut runs causewayctl in the zone's pod.
func (n *namespaces) ctlOut(args ...string) (string, error) {
	return n.kube.ctl(n.namespace, n.set, args...)
}

// gone deletes a namespace, as users do, and waits until it is gone.
func (n *namespaces) gone(name string) {
	n.t.Helper()
	n.kubectl("delete", "namespace", name, "--timeout=90s")
}

// checkThere deletes a namespace, and makes it again at once with policies of the same names, several times.
func (n *namespaces) checkThere() {
	n.gone(leaving)
	n.has(leaving)
	n.has(staying, "web", "spiffe://first/one", "spiffe://first/two", "one")
	before := n.begin(leaving, "second")
	for i := range 3 {
		n.gone(leaving)
		identity := fmt.Sprintf("again-%d", i)
		now := n.begin(leaving, identity)
		if now == before {
			n.t.Errorf("the namespace has the UID %s as before", now)
		}
		before = now
	}
	n.has(staying, "web", "spiffe://first/one", "spiffe://first/two", "one")
}

// checkAway deletes a namespace while no server answers: Kubernetes does not wait for one. It is made again before the
// server is back, which has then what the new one has: nothing, and then what users write.
func (n *namespaces) checkAway() {
	scale := func(replicas string) {
		n.t.Helper()
		n.kubectl("-n", n.namespace, "scale", "statefulset", n.set, "--replicas="+replicas)
	}
	scale("0")
	n.kubectl("-n", n.namespace, "wait", "--for=delete", "pod/"+n.set+"-0", "--timeout=90s")
	n.gone(leaving)
	n.kubectl("create", "namespace", leaving)
	scale("1")
	n.ready(n.namespace, n.set)
	n.has(leaving)
	n.has(staying, "web", "spiffe://first/one", "spiffe://first/two", "one")
	n.begin(leaving, "after")
}

// checkOwn deletes the namespace of the server, which has copies: nobody there keeps it, and users can delete what is left
// in theirs.
func (n *namespaces) checkOwn() {
	if copies := n.kubectl("get", "kuma", "-n", n.namespace, "-l", "causeway.io/copy=true", "-o", "name"); copies == "" {
		n.t.Fatal("there are no copies")
	}
	n.gone(n.namespace)
	n.kubectl("-n", staying, "delete", "mtp", "one", "--timeout=30s")
	n.gone(staying)
	n.gone(leaving)
}
