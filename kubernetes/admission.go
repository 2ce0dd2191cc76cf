package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
)

// The operations of an admissionRequest.
const (
	operationCreate = "CREATE"
	operationUpdate = "UPDATE"
	operationDelete = "DELETE"
)

// collectors are the parts of Kubernetes that delete the content of a deleted namespace, or the dependants of a deleted
// object. If they were refused, the namespace would never go away. A copy that they delete comes back.
var collectors = []string{"system:serviceaccount:kube-system:namespace-controller",
	"system:serviceaccount:kube-system:generic-garbage-collector", "system:kube-controller-manager"}

// judge answers one review. It refuses with the texts of the HTTP API. mutating requests the labels that the server
// computes.
func (b *Bridge) judge(ctx context.Context, r *admissionRequest, mutating bool) *admissionResponse {
	t := resources.Type(r.Kind.Kind)
	d, ok := resources.Lookup(t)
	if !ok || r.Kind.Group != group || !HasKind(t) || r.SubResource != "" || r.UserInfo.Username != "" && r.UserInfo.Username == b.self() {
		return &admissionResponse{Allowed: true}
	}
	object, old, err := objectsOf(r)
	if err != nil {
		return refused(api.BadField("document", "%v", err))
	}
	if r.Operation == operationDelete {
		return b.judgeDelete(r, old, d)
	}
	if r.Operation != operationCreate && r.Operation != operationUpdate {
		return &admissionResponse{Allowed: true}
	}
	switch {
	case old != nil && b.isCopy(t, old):
		return refused(b.isCopyOf(r, old))
	case object == nil:
		return refused(api.BadField("document", "there is no object"))
	case object.Meta.DeletionTimestamp == nil && labelled(object) != nil:
		return refused(labelled(object))
	case old != nil && sameMeaning(object, old):
		return &admissionResponse{Allowed: true} // a finalizer, an annotation: nothing that this server reads
	case !Fed(t):
		return refused(b.unwritable(t))
	}
	return b.judgeWrite(ctx, r, object, old, mutating)
}

// objectsOf reads the objects of a review.
func objectsOf(r *admissionRequest) (object, old *apiserver.Object, err error) {
	read := func(raw json.RawMessage) (*apiserver.Object, error) {
		if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			return nil, nil
		}
		var head struct {
			Metadata apiserver.Metadata `json:"metadata"`
		}
		err := json.Unmarshal(raw, &head)
		return &apiserver.Object{Meta: head.Metadata, Raw: raw}, err
	}
	if object, err = read(r.Object); err == nil {
		old, err = read(r.OldObject)
	}
	return object, old, err
}

// sameMeaning reports whether two versions of an object are the same to this server.
func sameMeaning(x, y *apiserver.Object) bool {
	type meaning struct {
		Mesh json.RawMessage `json:"mesh"`
		Spec json.RawMessage `json:"spec"`
	}
	var a, b meaning
	if json.Unmarshal(x.Raw, &a) != nil || json.Unmarshal(y.Raw, &b) != nil {
		return false
	}
	return bytes.Equal(a.Spec, b.Spec) && bytes.Equal(a.Mesh, b.Mesh) && maps.Equal(x.Meta.Labels, y.Meta.Labels)
}

// isCopyOf refuses a change of a copy, and says where its original is.
func (b *Bridge) isCopyOf(r *admissionRequest, old *apiserver.Object) error {
	where := "the server itself made it"
	what := r.Kind.Kind + " " + r.Name
	if found := b.resourceOf(objectID{Type: resources.Type(r.Kind.Kind), Name: apiserver.Name{Namespace: r.Namespace, Name: r.Name}}); found != nil {
		if kri := resources.KRIOf(found); !kri.IsZero() {
			what = kri.String()
		}
		switch zone := found.Zone(); {
		case b.Home.Owns(found):
		case zone != "":
			where = fmt.Sprintf("the original lives in zone %s, in the namespace %q under the name %s: change it there", zone, found.HomeNamespace(), found.DisplayName())
		default:
			where = fmt.Sprintf("the original lives on the global, under the name %s: change it there", found.DisplayName())
		}
	} else if zone := old.Meta.Labels[resources.LabelZone]; zone != "" {
		where = "the original lives in zone " + zone + ": change it there"
	}
	return api.BadField(fmt.Sprintf("metadata.labels[%q]", LabelCopy), "this is a copy of %s: %s", what, where)
}

func (b *Bridge) judgeDelete(r *admissionRequest, old *apiserver.Object, d *resources.Descriptor) *admissionResponse {
	switch {
	case slices.Contains(collectors, r.UserInfo.Username):
		return &admissionResponse{Allowed: true}
	case old == nil:
		return refused(api.BadField("document", "the deleted object is missing"))
	case b.isCopy(d.Type, old):
		return refused(b.isCopyOf(r, old))
	}
	b.mu.Lock()
	var key resources.Key
	if o := b.kinds[d.Type]; o != nil {
		if known := o.objects[old.ID()]; known != nil && known.uid == old.Meta.UID {
			key = known.key
		}
	}
	b.mu.Unlock()
	if key == (resources.Key{}) {
		return &admissionResponse{Allowed: true} // it has no effect
	}
	if err := b.Routes.ReviewDelete(key); err != nil {
		return refused(err)
	}
	return &admissionResponse{Allowed: true}
}

// judgeWrite judges a new or changed object as the HTTP API would.
func (b *Bridge) judgeWrite(ctx context.Context, r *admissionRequest, object, old *apiserver.Object,
	mutating bool) *admissionResponse {
	raw := object.Raw
	if object.Meta.Name == "" { // generateName: the name is made later
		raw = named(raw)
	}
	doc, err := decoded(raw, b.Home)
	if err != nil {
		return refused(err)
	}
	if old != nil {
		doc = withoutStale(doc, old.Meta.Labels, b.Home)
	}
	doc.Object.UID = object.Meta.UID
	forecast, err := b.Routes.Review(ctx, doc, r.DryRun && !mutating)
	if err != nil {
		return refused(err)
	}
	out := &admissionResponse{Allowed: true}
	if mutating {
		out.Patch, err = b.labelsPatch(object, doc)
		if err != nil {
			return refused(err)
		}
		if out.Patch != nil {
			out.PatchType = "JSONPatch"
		}
		return out // the validating call warns and asks who may assign: others may change the object in between
	}
	if err := b.mayAssign(ctx, r.UserInfo, doc); err != nil {
		return refused(err)
	}
	out.Warnings = warnings(forecast, r.DryRun)
	return out
}

// placeholder stands for a name that the API server has not made yet.
const placeholder = "name-to-be-generated"

func named(raw []byte) []byte {
	var document map[string]any
	if json.Unmarshal(raw, &document) != nil {
		return raw
	}
	if meta, ok := document["metadata"].(map[string]any); ok {
		meta["name"] = placeholder
	}
	out, err := json.Marshal(document)
	if err != nil {
		return raw
	}
	return out
}

// labelsPatch returns a JSON patch that sets the computed labels of an object; nil if they are correct. It leaves out
// values that are not valid labels in Kubernetes.
func (b *Bridge) labelsPatch(object *apiserver.Object, doc *resources.Resource) ([]byte, error) {
	labels := maps.Clone(object.Meta.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for key, value := range b.Home.ComputedLabels(doc) {
		if !resources.IsLabel(key, value) || key == resources.LabelDisplayName && doc.Name == placeholder {
			delete(labels, key)
			continue
		}
		labels[key] = value
	}
	if maps.Equal(labels, object.Meta.Labels) {
		return nil, nil
	}
	return json.Marshal([]map[string]any{{"op": "add", "path": "/metadata/labels", "value": labels}})
}

// warnings returns the texts that kubectl shows beside its answer.
func warnings(f *api.ForecastItem, dryRun bool) []string {
	var out []string
	for _, w := range f.Warnings {
		out = append(out, oneLine(w))
	}
	if !dryRun {
		return out
	}
	if f.Role != "" {
		out = append(out, "role: "+string(f.Role))
	}
	synced := "synced to: nowhere"
	if len(f.SyncedTo) > 0 {
		synced = "synced to: " + strings.Join(f.SyncedTo, ", ")
	}
	out = append(out, oneLine(synced))
	if p := f.Proxies; p != nil {
		where := ""
		if p.Zone != "" {
			where = " of zone " + p.Zone
		}
		out = append(out, oneLine(fmt.Sprintf("proxies%s: %d %s", where, p.Total, strings.Join(p.Items, " "))))
	}
	return out
}
