package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// editors let bob edit backend-ns as anybody does there, with a right to assign workloads that is bound in the namespace,
// where it reaches none; and let the group platform assign and edit.
const editors = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: view}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: causeway-view}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: bob}, {kind: Group, apiGroup: rbac.authorization.k8s.io, name: platform}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: bob-edits, namespace: backend-ns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: causeway-edit}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: bob}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: bob-assigns, namespace: backend-ns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: causeway-assign}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: bob}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: platform-assigns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: causeway-assign}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: platform}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: platform-edits, namespace: backend-ns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: causeway-edit}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: platform}]
`

// onlyFrontend lets bob assign one workload of one mesh.
const onlyFrontend = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: only-frontend}
rules: [{apiGroups: [kuma.io], resources: [workloads], verbs: [assign], resourceNames: [default/frontend]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: only-frontend}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: only-frontend}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: bob}]
`

// dataplane is a Dataplane of backend-ns with labels.
func dataplane(name string, port int, labels map[string]string) string {
	raw, _ := json.Marshal(labels) // of strings
	return fmt.Sprintf(`{"apiVersion": "kuma.io/v1alpha1", "kind": "Dataplane", "mesh": "default", "metadata": {"name": %q, "namespace": "backend-ns", "labels": %s},
 "spec": {"networking": {"address": "10.0.0.1", "inbound": [{"port": %d}]}}}`, name, raw, port)
}

// answered is a MeshService for which an identity answers.
func answered(id string) string {
	return fmt.Sprintf(`{"apiVersion": "kuma.io/v1alpha1", "kind": "MeshService", "metadata": {"name": "backend", "namespace": "backend-ns"},
 "spec": {"selector": {"dataplaneTags": {"app": "backend"}}, "ports": [{"port": 80, "targetPort": 8080, "appProtocol": "http"}], "identities": [{"type": "SpiffeID", "value": %q}]}}`, id)
}

const (
	account  = "k8s.kuma.io/service-account"
	workload = "kuma.io/workload"
)

// applies applies a manifest as a user. Without a refusal it must succeed, and else fail with all of its words.
func (w *world) applies(user, manifest string, refusal []string, args ...string) {
	w.t.Helper()
	out, err := w.feedKubectl(w.t.Context(), user, manifest, append([]string{"apply", "-f", "-"}, args...)...)
	if len(refusal) == 0 && err != nil {
		w.t.Errorf("%s may not: %s\n%s", user, out, manifest)
	}
	for _, word := range refusal {
		if err == nil || !strings.Contains(out, word) {
			w.t.Errorf("%s: %v, and it does not say %q: %s\n%s", user, err, word, out, manifest)
		}
	}
}

// settled waits until the store has a label of a Dataplane.
func (z *zone) settled(name, label, value string) {
	z.w.t.Helper()
	z.w.eventually(name+" to be in the store with "+value, func(ctx context.Context) error {
		status, text, err := z.call(ctx, http.MethodGet, "/meshes/default/dataplanes/"+name+"?namespace=backend-ns", "")
		var got struct{ Labels map[string]string }
		if err == nil && (status != http.StatusOK || json.Unmarshal([]byte(text), &got) != nil || got.Labels[label] != value) {
			err = fmt.Errorf("%d: %s", status, text)
		}
		return err
	})
}

// TestKubernetesAssignments gives Dataplanes identities by kubectl: who may is what Kubernetes' roles say, in the scopes
// of the HTTP API. An editor of a namespace assigns the accounts of her namespace, and no workload.
func TestKubernetesAssignments(t *testing.T) {
	w := newWorld(t)
	z := w.zone()
	z.webhooks("Fail")
	w.apply(editors)
	own := map[string]string{account: "backend"}
	asFrontend := map[string]string{account: "backend", workload: "frontend"}
	lacks := []string{`metadata.labels["kuma.io/workload"]: bob lacks the permission: assign Workload "frontend" in mesh default`, `causeway-assign`, `["default/frontend"]`}

	w.applies(bob, dataplane("d1", 8080, own), nil)
	z.settled("d1", account, "backend")
	w.applies(bob, dataplane("d1", 8080, asFrontend), lacks)
	w.applies(bob, dataplane("d2", 8080, asFrontend), lacks)
	w.applies(bob, dataplane("d2", 8080, asFrontend), lacks, "--dry-run=server")
	w.applies(bob, dataplane("frontend", 8080, nil), []string{`metadata.name: bob lacks the permission: assign Workload "frontend" in mesh default`})
	w.applies(bob, answered("spiffe://default.zone-1.mesh.local/ns/backend-ns/sa/backend"), nil)
	w.applies(bob, answered("spiffe://default.zone-1.mesh.local/workload/frontend"), []string{`spec.identities: bob lacks the permission: assign Workload "frontend"`})
	w.applies(bob, answered("spiffe://elsewhere/thief"), []string{`spec.identities: bob lacks the permission: assign Workload "spiffe://elsewhere/thief"`})
	if out, err := w.tryKubectl(t.Context(), bob, "label", "dataplane", "-n", "backend-ns", "d1", workload+"=frontend"); err == nil || !strings.Contains(out, lacks[0]) {
		t.Errorf("kubectl label: %v %s", err, out)
	}

	w.dying(z)
	w.applies(carol, dataplane("d2", 8080, asFrontend), nil) // who may
	z.settled("d2", workload, "frontend")
	w.applies(bob, dataplane("d2", 8081, asFrontend), nil) // it has it already
	w.apply(onlyFrontend)
	w.eventually("bob to have the right", func(ctx context.Context) error {
		out, err := w.feedKubectl(ctx, bob, dataplane("d3", 8080, asFrontend), "apply", "-f", "-")
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	w.applies(bob, dataplane("d4", 8080, map[string]string{account: "backend", workload: "payments"}), []string{`assign Workload "payments" in mesh default`})
	w.kubectl("delete", "clusterrolebinding", "only-frontend")
	w.eventually("the right to be gone", func(ctx context.Context) error {
		if out, err := w.feedKubectl(ctx, bob, dataplane("d5", 8080, asFrontend), "apply", "--dry-run=server", "-f", "-"); err == nil {
			return fmt.Errorf("it is taken: %s", out)
		}
		return nil
	})
	w.unanswered()
}

// dying changes the labels of a Dataplane that is being deleted and that a finalizer keeps: proxies still have it.
func (w *world) dying(z *zone) {
	w.t.Helper()
	w.applies(bob, strings.Replace(dataplane("dying", 8080, map[string]string{account: "backend"}), `"metadata": {`, `"metadata": {"finalizers": ["example.org/keep"], `, 1), nil)
	z.settled("dying", account, "backend")
	w.kubectl("delete", "dataplane", "-n", "backend-ns", "dying", "--wait=false")
	out, err := w.tryKubectl(w.t.Context(), bob, "label", "dataplane", "-n", "backend-ns", "dying", workload+"=frontend")
	if err == nil || !strings.Contains(out, "lacks the permission") {
		w.t.Errorf("a Dataplane that is being deleted takes a workload: %v %s", err, out)
	}
	w.kubectl("patch", "dataplane", "-n", "backend-ns", "dying", "--type=merge", "-p", `{"metadata": {"finalizers": []}}`)
}

// unanswered takes the server's right to ask away: then nobody assigns, and what assigns nothing is written.
func (w *world) unanswered() {
	w.t.Helper()
	w.apply(strings.Replace(rights, "- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}\n", "", 1))
	w.eventually("the question to be refused", func(ctx context.Context) error {
		out, err := w.feedKubectl(ctx, carol, dataplane("d6", 8080, map[string]string{workload: "frontend"}), "apply", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(out, "cannot ask the Kubernetes API server") || !strings.Contains(out, "subjectaccessreviews") {
			return fmt.Errorf("it is taken, or says: %s", out)
		}
		return nil
	})
	w.applies(bob, dataplane("d1", 8082, map[string]string{account: "backend"}), nil)
}
