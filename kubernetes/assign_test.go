package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

// question is a SubjectAccessReview, as the API server reads it.
type question struct {
	Spec struct {
		User       string
		UID        string
		Groups     []string
		Extra      map[string][]string
		Attributes apiserver.Right `json:"resourceAttributes"`
	}
}

// askedFor returns a rig whose API server answers questions of rights, and a list of those that it was asked.
func askedFor(t *testing.T, answer func(question, http.ResponseWriter)) (*rig, *[]question) {
	t.Helper()
	var all []question
	g := newRigWith(t, connectedTo(t, func(w http.ResponseWriter, r *http.Request) {
		var q question
		if r.URL.Path != "/apis/authorization.k8s.io/v1/subjectaccessreviews" || json.NewDecoder(r.Body).Decode(&q) != nil {
			http.Error(w, "{}", http.StatusNotFound)
			return
		}
		all = append(all, q)
		answer(q, w)
	}))
	g.list()
	return g, &all
}

// said answers a question with a status.
func said(status string) func(question, http.ResponseWriter) {
	return func(_ question, w http.ResponseWriter) { fmt.Fprintf(w, `{"status": %s}`, status) }
}

// asksFor is the question of a webhook about a new object of the namespace shop.
func asksFor(kind, metadata, spec string) *admissionRequest {
	r := &admissionRequest{UID: "q", Operation: operationCreate, Namespace: "shop", Name: "web",
		UserInfo: apiserver.User{Username: "mia", UID: "7", Groups: []string{"shop-team"}, Extra: map[string][]string{"scopes": {"a", "b"}}}}
	r.Kind.Group, r.Kind.Kind = group, kind
	r.Object = fmt.Appendf(nil, `{"apiVersion": "kuma.io/v1alpha1", "kind": %q, "metadata": {"name": "web", "namespace": "shop", "uid": "u", "generation": 1, "resourceVersion": "1"%s}, "spec": %s}`,
		kind, metadata, spec)
	return r
}

const networking = `{"networking": {"address": "10.0.0.1", "inbound": [{"port": 8080}]}}`

// TestRightsThatAreAsked holds which right of Kubernetes is asked for what an object assigns, for whom, and what is said
// where it is missing.
func TestRightsThatAreAsked(t *testing.T) {
	identities := func(n int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf(`{"type": "SpiffeID", "value": "spiffe://other/%d"}`, i))
		}
		return `{"selector": {"dataplaneTags": {"app": "web"}}, "ports": [{"port": 80}], "identities": [` + strings.Join(out, ",") + `]}`
	}
	account := apiserver.Right{Verb: "assign", Resource: "serviceaccounts", Namespace: "shop", Name: "web-sa"}
	workload := func(name string) apiserver.Right {
		return apiserver.Right{Verb: "assign", Group: "kuma.io", Resource: "workloads", Name: name}
	}
	for name, c := range map[string]struct {
		asked *admissionRequest
		want  []apiserver.Right
		says  string // of the last one
	}{
		"account": {asksFor("Dataplane", `, "labels": {"k8s.kuma.io/service-account": "web-sa"}`, networking), []apiserver.Right{account},
			`metadata.labels["k8s.kuma.io/service-account"]: mia lacks the permission: assign ServiceAccount "web-sa" in mesh default, namespace shop. A Role in shop`},
		"workload": {asksFor("Dataplane", `, "labels": {"k8s.kuma.io/service-account": "web-sa", "kuma.io/workload": "till"}`, networking),
			[]apiserver.Right{account, workload("default/till")}, `metadata.labels["kuma.io/workload"]: mia lacks the permission: assign Workload "till" in mesh default. A ClusterRoleBinding of causeway-assign`},
		"name": {asksFor("Dataplane", "", networking), []apiserver.Right{workload("default/web")}, `metadata.name: mia lacks`},
		"other's identity": {asksFor("MeshService", "", identities(1)), []apiserver.Right{workload("default/spiffe://other/0")},
			`spec.identities: mia lacks`},
		"many identities": {asksFor("MeshService", "", identities(maxAsked+1)), []apiserver.Right{workload("")},
			`without resourceNames because the object assigns 17. The ClusterRole causeway-assign`},
		"nothing": {asksFor("MeshService", "", identities(0)), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range len(c.want) + 1 { // the i-th is refused, in the end none
				g, all := askedFor(t, func(q question, w http.ResponseWriter) {
					fmt.Fprintf(w, `{"status": {"allowed": %v}}`, i == len(c.want) || q.Spec.Attributes != c.want[i])
				})
				answer := g.judge(t.Context(), c.asked, false)
				if answer.Allowed != (i == len(c.want)) {
					t.Errorf("without the right %d the answer is %+v", i, answer.Status)
				}
				if i == len(c.want)-1 && (answer.Status.Code != http.StatusForbidden || answer.Status.Reason != "Forbidden" || !strings.Contains(answer.Status.Message, c.says)) {
					t.Errorf("it says %+v, want %q", answer.Status, c.says)
				}
				var got []apiserver.Right
				for _, q := range *all {
					got = append(got, q.Spec.Attributes)
					if u := q.Spec; u.User != "mia" || u.UID != "7" || !slices.Equal(u.Groups, []string{"shop-team"}) || !slices.Equal(u.Extra["scopes"], []string{"a", "b"}) {
						t.Errorf("the question is about %+v", u)
					}
				}
				if want := c.want[:min(i+1, len(c.want))]; !slices.Equal(got, want) {
					t.Errorf("asked for %+v, want %+v", got, want)
				}
			}
		})
	}
}

// TestRightsThatNobodyConfirms: only a plain yes is one, and what assigns nothing is not held up.
func TestRightsThatNobodyConfirms(t *testing.T) {
	dataplane := asksFor("Dataplane", `, "labels": {"k8s.kuma.io/service-account": "web-sa"}`, networking)
	for name, c := range map[string]struct {
		answer func(question, http.ResponseWriter)
		code   int // 0: it is allowed
	}{
		"yes":             {said(`{"allowed": true}`), 0},
		"no":              {said(`{"allowed": false, "reason": "RBAC: no"}`), http.StatusForbidden},
		"yes, and denied": {said(`{"allowed": true, "denied": true}`), http.StatusForbidden},
		"no status":       {said(`{}`), http.StatusForbidden},
		"an error beside": {said(`{"evaluationError": "clusterrole not found"}`), http.StatusForbidden},
		"yes as text":     {said(`{"allowed": "true"}`), http.StatusServiceUnavailable},
		"no JSON":         {said(`{"allowed": true`), http.StatusServiceUnavailable},
		"it may not ask": {func(_ question, w http.ResponseWriter) {
			http.Error(w, `{"kind": "Status", "code": 403, "reason": "Forbidden", "message": "cannot create"}`, http.StatusForbidden)
		}, http.StatusServiceUnavailable},
		"no answer": {func(question, http.ResponseWriter) { panic(http.ErrAbortHandler) }, http.StatusServiceUnavailable},
		"elsewhere": {func(_ question, w http.ResponseWriter) {
			http.Redirect(w, &http.Request{}, "https://localhost/", http.StatusTemporaryRedirect)
		}, http.StatusServiceUnavailable},
	} {
		g, _ := askedFor(t, c.answer)
		answer := g.judge(t.Context(), dataplane, false)
		if answer.Allowed != (c.code == 0) || c.code != 0 && answer.Status.Code != c.code {
			t.Errorf("%s: %+v %+v", name, answer, answer.Status)
		}
		if c.code == http.StatusServiceUnavailable && !strings.Contains(answer.Status.Message, `metadata.labels["k8s.kuma.io/service-account"]: the server cannot ask`) {
			t.Errorf("%s: it says %s", name, answer.Status.Message)
		}
		if other := g.judge(t.Context(), asked(operationCreate, permission("u", 1, nil, true).Raw, nil), false); !other.Allowed {
			t.Errorf("%s: a policy is refused: %+v", name, other.Status)
		}
	}
}

// TestRightsAreAskedInTime: the API server waits 5 s for the webhook, and hears why before.
func TestRightsAreAskedInTime(t *testing.T) {
	done := make(chan struct{})
	g, _ := askedFor(t, func(question, http.ResponseWriter) { <-done })
	defer close(done)
	began := time.Now()
	answer := g.judge(t.Context(), asksFor("Dataplane", "", networking), false)
	if took := time.Since(began); answer.Allowed || answer.Status.Code != http.StatusServiceUnavailable || took > 5*time.Second {
		t.Errorf("after %s: %+v", took, answer.Status)
	}
}

// TestWhatDiesIsJudged changes what a Dataplane is while a finalizer keeps it: proxies still have it.
func TestWhatDiesIsJudged(t *testing.T) {
	g, _ := askedFor(t, said(`{"allowed": false}`))
	dying := `, "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.org/keep"]`
	update := asksFor("Dataplane", dying+`, "labels": {"kuma.io/workload": "till"}`, networking)
	update.Operation, update.OldObject = operationUpdate, asksFor("Dataplane", dying, networking).Object
	if answer := g.judge(t.Context(), update, false); answer.Allowed || answer.Status.Code != http.StatusForbidden {
		t.Errorf("it takes a workload: %+v", answer.Status)
	}
	update.Object = asksFor("Dataplane", `, "deletionTimestamp": "2026-01-01T00:00:00Z"`, networking).Object
	if answer := g.judge(t.Context(), update, false); !answer.Allowed {
		t.Errorf("its finalizer stays: %+v", answer.Status)
	}
}
