package kubernetes

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/kubernetes/podtoken"
	"github.com/causeway-mesh/causeway/resources"
)

// injectTime limits the requests about one pod. The API server waits 5 s for the webhook.
const injectTime = 4 * time.Second

// namespaces is the kind of namespaces.
var namespaces = apiserver.Kind{Version: "v1", Plural: "namespaces", Name: "Namespace", Namespaced: false}

// judgePod decides about a new pod: it gets a proxy, starts unchanged, or is refused.
func (b *Bridge) judgePod(ctx context.Context, r *admissionRequest) *admissionResponse {
	if r.Kind.Group != "" || r.Kind.Kind != "Pod" || r.SubResource != "" || r.Operation != operationCreate {
		return &admissionResponse{Allowed: true}
	}
	settings := &injection.Settings{SystemNamespace: cmp.Or(b.Home.SystemNamespace, resources.DefaultSystemNamespace)}
	if b.Injection != nil {
		settings = b.Injection()
	}
	settings.Nonce = rand.Text()
	ns := injection.Namespace{Name: r.Namespace}
	if !injection.Exempt(ns, settings) { // those start whatever the API server answers
		var err error
		if ns.Labels, err = b.namespaceLabels(ctx, r.Namespace); err != nil {
			b.Log.Warn("cannot read the labels of a namespace; its pods wait", "namespace",
				r.Namespace, "error", err)
			return refusedPod(http.StatusServiceUnavailable, fmt.Sprintf(
				"cannot read the labels of namespace %s, which decide whether the pod gets a proxy; trying again: %v", r.Namespace, err))
		}
	}
	result, err := injection.Inject(r.Object, ns, settings)
	switch {
	case errors.Is(err, injection.ErrNone):
		return refusedPod(http.StatusServiceUnavailable, err.Error()+
			": the operator turns it on by the value injection.enabled of the chart causeway-zone")
	case errors.Is(err, injection.ErrRefused):
		return refusedPod(http.StatusUnprocessableEntity, err.Error())
	case err != nil:
		b.Log.Error("a pod cannot get its proxy", "namespace", r.Namespace, "error", err)
		return refusedPod(http.StatusInternalServerError, "the pod cannot get its proxy: "+err.Error())
	}
	return b.injected(result)
}

// PodTokens returns the checker for pod tokens; nil without a cluster.
func (b *Bridge) PodTokens() *podtoken.Checker {
	if b == nil {
		return nil
	}
	return podtoken.New(b.Prompt, b.Now)
}

// injected returns the response for a pod that may start.
func (b *Bridge) injected(result *injection.Result) *admissionResponse {
	out := &admissionResponse{Allowed: true}
	for _, w := range result.Warnings {
		out.Warnings = append(out.Warnings, oneLine(w))
	}
	if len(result.Patch) == 0 {
		return out
	}
	mesh := resources.Key{Type: resources.TypeMesh, Name: result.Mesh}
	if b.Store.Snapshot().Get(mesh) == nil {
		out.Warnings = append(out.Warnings, oneLine(fmt.Sprintf("mesh %q not found: the pod becomes ready only once it exists", result.Mesh)))
	}
	patch, err := json.Marshal(result.Patch)
	if err != nil {
		return refusedPod(http.StatusInternalServerError, "the pod cannot get its proxy: "+err.Error())
	}
	out.Patch, out.PatchType = patch, "JSONPatch"
	return out
}

// namespaceLabels requests the labels of a namespace each time: a watch may be older than the state by which the API
// server called this webhook.
func (b *Bridge) namespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, injectTime)
	defer cancel()
	o, err := b.Prompt.Get(ctx, namespaces, apiserver.Name{Name: name})
	if err != nil {
		return nil, err
	}
	return o.Meta.Labels, nil
}

func refusedPod(code int, message string) *admissionResponse {
	reason := reasons[code]
	if code == http.StatusUnprocessableEntity {
		reason = "Invalid"
	}
	return &admissionResponse{Status: &admissionStatus{Status: "Failure", Message: message, Reason: reason, Code: code}}
}
