package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestKubernetesZone installs a zone whose users write by kubectl, with no rights but those of the chart.
func TestKubernetesZone(t *testing.T) {
	k := newKube(t)
	k.loadServers()
	k.defineTypes()
	k.namespace("mesh-system")
	k.namespace("shop")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(k.story("mesh-system", "z-causeway-zone"))
		}
		ctx := context.WithoutCancel(t.Context())
		for _, kind := range []string{"mutating", "validating"} { // nobody answers any more
			if out, err := k.Kubectl(ctx, "delete", kind+"webhookconfiguration", "z-causeway-zone-mesh-system", "--ignore-not-found"); err != nil {
				t.Error(out)
			}
		}
	})
	k.helm("install", "z", filepath.Join("deploy", "charts", "causeway-zone"), "--namespace", "mesh-system", "--set",
		"zone=zone-1,kubernetes.enabled=true,injection.enabled=true,injection.envoyImage=localhost/envoy:dev,persistence.enabled=false")
	k.ready("mesh-system", "z-causeway-zone")
	if out, err := k.tryHelm("install", "second", filepath.Join("deploy", "charts", "causeway-zone"), "--namespace", "shop", "--set",
		"zone=zone-2,kubernetes.enabled=true"); err == nil || !strings.Contains(out, "have a server already, whose webhooks are in z-causeway-zone-mesh-system") {
		t.Errorf("a second zone for the same objects: %v, %s", err, out)
	}

	policy := `
apiVersion: kuma.io/v1alpha1
kind: MeshTrafficPermission
metadata: {name: by-owner, namespace: shop, labels: {kuma.io/mesh: default}}
spec:
  targetRef: {kind: Dataplane}
  default: {%s: [{spiffeId: {type: Exact, value: "spiffe://a/b"}}]}
`
	k.eventually("the policy to be taken", func(ctx context.Context) error {
		out, err := k.Apply(ctx, fmt.Sprintf(policy, "allow"))
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	k.kubectl("-n", "shop", "wait", "--for=condition=Accepted", "mtp/by-owner", "--timeout=60s")
	got := k.kubectl("-n", "shop", "get", "mtp", "by-owner", "-o", `jsonpath={.metadata.labels.kuma\.io/policy-role} {.metadata.labels.kuma\.io/origin}`)
	if got != "workload-owner zone" {
		t.Errorf("the policy's role and origin are %q", got)
	}
	out, err := k.Apply(t.Context(), `
apiVersion: kuma.io/v1alpha1
kind: MeshTimeout
metadata: {name: broken, namespace: shop}
spec: {targetRef: {kind: Dataplane}, rules: [{default: {idleTimeoutt: 1s}}]}
`)
	if err == nil || !strings.Contains(out, "spec.rules[0].default.idleTimeoutt") || !strings.Contains(out, "idleTimeout") {
		t.Errorf("a misspelled field: %v, %s", err, out)
	}
	k.eventually("the zone to have the policy", func(context.Context) error {
		out, err := k.ctl("mesh-system", "z-causeway-zone", "get", "mtp", "-A")
		if err == nil && !strings.Contains(out, "by-owner") {
			err = errors.New("it does not")
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	t.Run("pods with proxies", func(t *testing.T) { k.as(t).checkPods() })
	t.Run("probes", func(t *testing.T) { k.as(t).checkProbes() })
	if logs := k.kubectl("-n", "mesh-system", "logs", "z-causeway-zone-0"); strings.Contains(logs, "forbidden") {
		t.Errorf("the server wants rights that the chart does not give:\n%s", logs)
	}
	// The server may do nothing else.
	account := "system:serviceaccount:mesh-system:z-causeway-zone"
	for _, c := range [][]string{{"create", "pods"}, {"delete", "pods"}, {"get", "secrets"}, {"create", "meshtrafficpermissions.kuma.io"}, {"delete", "meshtimeouts.kuma.io"},
		{"delete", "customresourcedefinitions"}, {"patch", "customresourcedefinitions/others.example"}, {"get", "/metrics"}} {
		if out, _ := k.Kubectl(t.Context(), "auth", "can-i", c[0], c[1], "--as", account, "-n", "shop"); !strings.Contains(out, "no") {
			t.Errorf("it may %s: %s", strings.Join(c, " "), out)
		}
	}
	k.kubectl("-n", "shop", "delete", "mtp", "by-owner")
}
