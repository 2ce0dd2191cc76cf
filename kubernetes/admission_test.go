package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// asked is a question about a permission.
func asked(operation string, object, old any) *admissionRequest {
	r := &admissionRequest{UID: "q", Operation: operation, Namespace: "shop", Name: "web"}
	r.Kind.Group, r.Kind.Kind = group, "MeshTrafficPermission"
	raw := func(v any) json.RawMessage {
		if v == nil {
			return nil
		}
		out, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return out
	}
	r.Object, r.OldObject = raw(object), raw(old)
	return r
}

// TestForeignQuestions asks about what is not this server's to judge, and what is and lacks its objects.
func TestForeignQuestions(t *testing.T) {
	g := newRig(t)
	g.list()
	bad := permission("u", 1, nil, false).Raw
	for name, c := range map[string]struct {
		change  func(*admissionRequest)
		allowed bool
	}{
		"judged":            {func(*admissionRequest) {}, false},
		"other group":       {func(r *admissionRequest) { r.Kind.Group = "example.org" }, true},
		"other kind":        {func(r *admissionRequest) { r.Kind.Kind = "Pod" }, true},
		"status":            {func(r *admissionRequest) { r.SubResource = "status" }, true},
		"null":              {func(r *admissionRequest) { r.Object = json.RawMessage("null") }, false},
		"no object":         {func(r *admissionRequest) { r.Object = nil }, false},
		"empty object":      {func(r *admissionRequest) { r.Object = json.RawMessage("{}") }, false},
		"text":              {func(r *admissionRequest) { r.Object = json.RawMessage(`"x"`) }, false},
		"list":              {func(r *admissionRequest) { r.Object = json.RawMessage("[]") }, false},
		"deletion of null":  {func(r *admissionRequest) { r.Operation, r.Object = operationDelete, nil }, false},
		"copy of no server": {func(r *admissionRequest) { r.Object = permission("u", 1, map[string]string{LabelCopy: "no"}, true).Raw }, false},
		"nobody asks": {func(r *admissionRequest) {
			r.UserInfo.Username = "" // who the server is, is not known yet
		}, false},
	} {
		r := asked(operationCreate, bad, nil)
		c.change(r)
		for _, mutating := range []bool{true, false} {
			if answer := g.judge(t.Context(), r, mutating); answer.Allowed != c.allowed {
				t.Errorf("%s: allowed is %v: %+v", name, answer.Allowed, answer.Status)
			}
		}
	}
}

// TestClaimedLabels writes labels that say whose a policy is: the webhook refuses what is not so, and the feed, which
// takes objects that no webhook saw, stores none.
func TestClaimedLabels(t *testing.T) {
	truth := map[string]string{}
	g := newRig(t)
	g.list(permission("u", 1, nil, true))
	key := resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default", Namespace: "shop", Name: "web"}
	maps.Copy(truth, g.store.Snapshot().Get(key).Labels)
	for label, value := range map[string]string{
		resources.LabelOrigin: "global", resources.LabelZone: "zone-2", resources.LabelPolicyRole: "system",
		resources.LabelDisplayName: "other", "k8s.kuma.io/namespace": resources.DefaultSystemNamespace,
	} {
		claim := permission("u", 2, map[string]string{label: value}, true)
		for _, mutating := range []bool{true, false} {
			answer := g.judge(t.Context(), asked(operationCreate, claim.Raw, nil), mutating)
			mended := strings.Contains(string(answer.Patch), fmt.Sprintf("%q:%q", label, truth[label]))
			if answer.Allowed && truth[label] != value && !mended {
				t.Errorf("%s=%s is allowed, with the patch %s", label, value, answer.Patch)
			}
		}
		g.sink().Changed(claim)
		g.settled()
		if got := g.store.Snapshot().Get(key).Labels; !maps.Equal(got, truth) {
			t.Errorf("with %s=%s the store has %v, want %v", label, value, got, truth)
		}
		g.sink().Changed(permission("u", 1, nil, true))
		g.settled()
	}
}

// FuzzReview asks any question. Nothing panics, and what is no AdmissionReview, or holds what is no object, is not allowed.
func FuzzReview(f *testing.F) {
	for _, r := range []*admissionRequest{
		asked(operationCreate, permission("u", 1, nil, true).Raw, nil),
		asked(operationUpdate, permission("u", 2, map[string]string{LabelCopy: copied}, true).Raw, permission("u", 1, nil, true).Raw),
		asked(operationDelete, nil, permission("u", 1, nil, true).Raw),
	} {
		raw, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
			"uid": r.UID, "kind": map[string]string{"group": r.Kind.Group, "kind": r.Kind.Kind}, "operation": r.Operation,
			"name": r.Name, "namespace": r.Namespace, "object": r.Object, "oldObject": r.OldObject}})
		must(f, err)
		f.Add(raw)
	}
	g := newRig(f)
	g.list(permission("u", 1, nil, true))
	f.Fuzz(func(t *testing.T, raw []byte) {
		question, err := parseReview(raw)
		if err != nil {
			return
		}
		for _, mutating := range []bool{true, false} {
			answer := g.judge(t.Context(), question, mutating)
			if !answer.Allowed && (answer.Status == nil || answer.Status.Message == "" || answer.Status.Code < 400) {
				t.Errorf("it is refused without a reason: %+v", answer.Status)
			}
			if answer.Patch != nil && !json.Valid(answer.Patch) {
				t.Errorf("the patch is %s", answer.Patch)
			}
			ours := question.Kind.Group == group && question.Kind.Kind == "MeshTrafficPermission" && question.SubResource == ""
			if ours && question.Operation == operationCreate && answer.Allowed && len(question.Object) < 3 {
				t.Errorf("%s is allowed", question.Object)
			}
		}
	})
}
