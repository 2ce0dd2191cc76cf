package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/causeway-mesh/causeway/kubernetes/injection"
)

// podRig is a bridge whose API server knows one namespace, shop, with labels; it answers with code unless that is 200.
type podRig struct {
	*rig

	labels string
	code   int
	asked  atomic.Int64
}

func newPodRig(t *testing.T) *podRig {
	t.Helper()
	p := &podRig{labels: `{"kuma.io/sidecar-injection": "enabled"}`, code: http.StatusOK}
	p.rig = newRigWith(t, connectedTo(t, func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		if p.code != http.StatusOK || r.URL.Path != "/api/v1/namespaces/shop" {
			http.Error(w, "{}", max(p.code, http.StatusNotFound))
			return
		}
		fmt.Fprintf(w, `{"metadata": {"name": "shop", "labels": %s}}`, p.labels)
	}))
	p.Home.SystemNamespace = "mesh-system"
	p.Serving = &Certificate{secret: "s"}
	p.Injection = func() *injection.Settings {
		return &injection.Settings{Image: "causeway-zone:1", Envoy: "envoy:1", XDSAddress: "causeway-zone.mesh-system.svc:5678",
			XDSCA: "ca", Audience: "causeway-proxy", SystemNamespace: "mesh-system",
			Bootstrap: func(b *injection.Bootstrap) ([]byte, error) { return fmt.Appendf(nil, "%+v", *b), nil }}
	}
	return p
}

// ask posts what the API server posts about a pod that a Deployment makes, changed by pairs of texts.
func (p *podRig) ask(t *testing.T, changes ...string) *admissionResponse {
	t.Helper()
	raw, err := os.ReadFile("testdata/pod_review.json")
	must(t, err)
	for i := 0; i < len(changes); i += 2 {
		if !bytes.Contains(raw, []byte(changes[i])) {
			t.Fatalf("there is no %s", changes[i])
		}
		raw = bytes.ReplaceAll(raw, []byte(changes[i]), []byte(changes[i+1]))
	}
	w := httptest.NewRecorder()
	p.answer(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, pathInject+"/s", bytes.NewReader(raw)))
	var review admissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || w.Code != http.StatusOK || review.Response == nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	if review.Response.UID != "6a5d6a6c-3b1c-4a6f-9f0e-0a6a4a0f2f11" {
		t.Errorf("the answer is to the question %q", review.Response.UID)
	}
	return review.Response
}

// TestPodsGetTheirProxy asks with the bytes of the API server about a pod of a Deployment.
func TestPodsGetTheirProxy(t *testing.T) {
	t.Parallel()
	p := newPodRig(t)
	got := p.ask(t)
	var patch []injection.Operation
	if err := json.Unmarshal(got.Patch, &patch); err != nil || !got.Allowed || got.PatchType != "JSONPatch" || len(patch) != 3 {
		t.Fatalf("%+v %s: %v", got, got.Patch, err)
	}
	for _, part := range []string{`"name":"causeway-proxy"`, `"image":"envoy:1"`, `Drain:45s`, "kube-api-access-7xk2v", "causeway-zone.mesh-system.svc:5678"} {
		if !strings.Contains(string(got.Patch), part) {
			t.Errorf("the patch has no %s: %s", part, got.Patch)
		}
	}
	if len(got.Warnings) > 0 {
		t.Errorf("it warns: %q", got.Warnings)
	}
	if p.asked.Load() != 1 {
		t.Errorf("the API server is asked %d times", p.asked.Load())
	}
	got = p.ask(t, `"app":"backend"`, `"app":"backend","kuma.io/mesh":"other"`)
	if !got.Allowed || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], `mesh "other" not found`) {
		t.Errorf("in a mesh that is not there: %+v", got)
	}
}

// TestPodsThatStayAsTheyAre asks about pods that get no proxy.
func TestPodsThatStayAsTheyAre(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string][]string{
		"declined":        {`"app":"backend"`, `"kuma.io/sidecar-injection":"disabled"`},
		"kube-system":     {`"namespace":"shop"`, `"namespace":"kube-system"`},
		"our namespace":   {`"namespace":"shop"`, `"namespace":"mesh-system"`},
		"an update":       {`"operation":"CREATE"`, `"operation":"UPDATE"`},
		"another kind":    {`"kind":{"group":"","version":"v1","kind":"Pod"},"resource"`, `"kind":{"group":"","version":"v1","kind":"Secret"},"resource"`},
		"of the node":     {`"securityContext":{},"schedulerName"`, `"hostNetwork":true,"securityContext":{},"schedulerName"`},
		"without a label": nil,
	} {
		p := newPodRig(t)
		if changes == nil {
			p.labels = "{}"
		}
		if strings.HasPrefix(name, "kube") || strings.HasPrefix(name, "our") {
			p.code = http.StatusInternalServerError // those start whatever the API server has to say
		}
		if got := p.ask(t, changes...); !got.Allowed || got.Patch != nil {
			t.Errorf("%s: %+v %s", name, got, got.Patch)
		}
	}
}

// TestPodsThatDoNotStart asks about pods that would start without the proxy that they ask for.
func TestPodsThatDoNotStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*podRig)
		changes []string
		code    int
		want    string
	}{
		"a typo":                     {nil, []string{`"app":"backend"`, `"kuma.io/sidecar-injection":"enable"`}, 422, `is "enable": want enabled or disabled`},
		"its user":                   {nil, []string{`"securityContext":{},"schedulerName"`, `"securityContext":{"runAsUser":56785},"schedulerName"`}, 422, "spec.securityContext.runAsUser is 56785"},
		"a bad annotation":           {nil, []string{`"45s"`, `"soon"`}, 422, `annotation kuma.io/sidecar-drain-time is "soon"`},
		"no object":                  {nil, []string{`"containers":[`, `"containers":[7,`}, 422, "the pod does not decode"},
		"the API server away":        {func(p *podRig) { p.code = 503 }, nil, 503, "cannot read the labels of namespace shop"},
		"no right to read":           {func(p *podRig) { p.code = 403 }, nil, 503, "cannot read the labels of namespace shop"},
		"a zone that gives no proxy": {func(p *podRig) { p.Injection = nil }, nil, 503, "injection.enabled"},
	} {
		p := newPodRig(t)
		if c.prepare != nil {
			c.prepare(p)
		}
		got := p.ask(t, c.changes...)
		if got.Allowed || got.Patch != nil || got.Status == nil || got.Status.Code != c.code || !strings.Contains(got.Status.Message, c.want) {
			t.Errorf("%s: %+v %+v", name, got, got.Status)
		}
	}
}

// TestPodQuestionsAreBounded posts what is no question, with and without the secret of the path.
func TestPodQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	p := newPodRig(t)
	for path, want := range map[string]int{pathInject: 404, pathInject + "/x": 404, pathInject + "/s": 413, "/other/s": 404} {
		w := httptest.NewRecorder()
		p.answer(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(make([]byte, maxReview+1))))
		if w.Code != want {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}
