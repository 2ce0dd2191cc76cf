package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// projectionWriters limits the copies that are written concurrently.
const projectionWriters = 4

// projectionRetry is the wait after the API server refused a copy.
const projectionRetry = 5 * time.Second

// idOf returns the object that shows a resource which no user wrote as an object: it is in the system namespace.
func (b *Bridge) idOf(key resources.Key) (objectID, bool) {
	k := b.kinds[key.Type]
	if k == nil {
		return objectID{}, false
	}
	id := objectID{Type: key.Type, Name: apiserver.Name{Name: key.Name}}
	if k.Namespaced {
		id.Namespace = systemNamespace(b.Home)
	}
	return id, true
}

// projectLocked schedules the comparison of a copy.
func (b *Bridge) projectLocked(id objectID) {
	b.unprojected[id] = true
	wake(b.project)
}

// projectAll schedules the comparison of all copies: of the wanted and of the existing ones.
func (b *Bridge) projectAll() {
	snapshot := b.Store.Snapshot()
	b.mu.Lock()
	defer b.mu.Unlock()
	for t, k := range b.kinds {
		for r := range snapshot.List(store.Query{Type: t}) {
			if id, ok := b.idOf(r.Key); ok {
				b.unprojected[id] = true
			}
		}
		for name, o := range k.objects {
			if o.copy {
				b.unprojected[objectID{t, name}] = true
			}
		}
	}
	wake(b.project)
}

// projection keeps copies equal to their resources, until ctx ends. It begins once all objects are known.
func (b *Bridge) projection(ctx context.Context) error {
	retry := time.NewTicker(projectionRetry)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.project:
		case <-retry.C:
		}
		if !b.complete() {
			continue
		}
		b.mu.Lock()
		work := b.unprojected
		b.unprojected = map[objectID]bool{}
		b.mu.Unlock()
		group := errgroup.Group{}
		group.SetLimit(projectionWriters)
		for id := range work {
			group.Go(func() error { b.projectOne(ctx, id); return nil })
		}
		_ = group.Wait() // failures are scheduled again
	}
}

// projectOne makes one object what it should be.
func (b *Bridge) projectOne(ctx context.Context, id objectID) {
	wanted := b.shownAs(id)
	b.mu.Lock()
	k := b.kinds[id.Type]
	var there objectState
	o := k.objects[id.Name]
	if o != nil {
		there = *o
	}
	absent := k.absent
	if absent {
		b.unprojected[id] = true // it arrives with its definition
	}
	b.mu.Unlock()
	if absent {
		return
	}
	var err error
	switch {
	case o != nil && !there.copy:
		return // a user's object has this name
	case wanted == nil && o == nil:
		return
	case wanted == nil:
		if err = b.Client.Delete(ctx, k.Kind.Kind, id.Name, there.uid); apiserver.IsNotFound(err) || apiserver.IsConflict(err) {
			err = nil
		}
	case o == nil:
		err = b.create(ctx, k, id, wanted)
	case there.content != wanted.content:
		err = b.rewrite(ctx, k, id, there.version, wanted)
	}
	if err != nil && ctx.Err() == nil {
		b.Log.Warn("a copy is not shown in Kubernetes yet", "type", id.Type, "object", id.Name.String(), "error", err)
		b.mu.Lock()
		b.unprojected[id] = true // the ticker retries it
		b.mu.Unlock()
	}
}

// shown is an object that shows a resource.
type shown struct {
	resource *resources.Resource
	content  string
	document []byte
}

// shownAs returns the wanted object: nil if there should be none.
func (b *Bridge) shownAs(id objectID) *shown {
	r := b.resourceOf(id)
	if r == nil || !r.Object.IsZero() {
		return nil
	}
	if b.Home.Owns(r) && r.Type == resources.TypeMesh {
		// The server made it for users to change: from now on it is theirs.
		return &shown{resource: r, document: resources.AppendObject(nil, withoutStatus(r), "", nil, nil)}
	}
	if r.Type == resources.TypeDataplane && b.Home.Zone == "" {
		return nil // a global has the Dataplanes of all zones: too many for the API server
	}
	r, err := hidden(r)
	if err != nil {
		b.Log.Warn("a resource is not shown in Kubernetes: its secrets cannot be told apart", "type", id.Type, "object",
			id.Name.String(), "error", err)
		return nil
	}
	r = withoutStatus(r)
	r.Labels = shownLabels(r.Labels)
	raw := resources.AppendObject(nil, r, id.Namespace, map[string]string{LabelCopy: copied}, nil)
	sum := sha256.Sum256(raw)
	content := hex.EncodeToString(sum[:8])
	return &shown{resource: r, content: content, document: resources.AppendObject(nil, r, id.Namespace,
		map[string]string{LabelCopy: copied}, map[string]string{annotationContent: content})}
}

// resourceOf returns the resource that an object in the position of a copy shows; nil if there is none. Resources of
// other authors are in no namespace of the store, or in the system namespace. Their names are hashed, and so unique
// among meshes.
func (b *Bridge) resourceOf(id objectID) *resources.Resource {
	return b.find(id, func(*resources.Resource) bool { return true })
}

// mayBeCopy reports whether an object of this name may be a copy.
func (b *Bridge) mayBeCopy(id objectID) bool {
	k := b.kinds[id.Type]
	return k != nil && (!k.Namespaced || id.Namespace == systemNamespace(b.Home))
}

// isCopy reports whether this server made an object. The label alone does not prove it: while the webhook is down,
// users can set it, and the object stays theirs.
func (b *Bridge) isCopy(t resources.Type, o *apiserver.Object) bool {
	id := objectID{t, o.ID()}
	if o.Meta.Labels[LabelCopy] != copied || !b.mayBeCopy(id) {
		return false
	}
	return b.find(id, func(r *resources.Resource) bool { return !r.Object.IsZero() && r.Object.UID == o.Meta.UID }) == nil
}

// find returns the first resource in the position of a wanted copy.
func (b *Bridge) find(id objectID, wanted func(*resources.Resource) bool) *resources.Resource {
	if !b.mayBeCopy(id) {
		return nil
	}
	snapshot, meshes := b.Store.Snapshot(), []string{""}
	if d, _ := resources.Lookup(id.Type); d.Scope == resources.ScopeMesh {
		meshes = nil
		for mesh := range snapshot.List(store.Query{Type: resources.TypeMesh}) {
			meshes = append(meshes, mesh.Name)
		}
	}
	for _, mesh := range meshes {
		for _, namespace := range []string{"", systemNamespace(b.Home)} {
			if r := snapshot.Get(resources.Key{Type: id.Type, Mesh: mesh, Namespace: namespace, Name: id.Name.Name}); r != nil && wanted(r) {
				return r
			}
		}
	}
	return nil
}

func withoutStatus(r *resources.Resource) *resources.Resource {
	c := r.Clone()
	c.Status, c.CreationTime = nil, time.Time{}
	return c
}

// hidden returns r with its secrets as the HTTP API shows them. It fails rather than show one.
func hidden(r *resources.Resource) (*resources.Resource, error) {
	spec, err := resources.EditSecrets(r, func(_, value string) (string, error) {
		if resources.IsHidden(value) {
			return resources.ShownText(value), nil
		}
		return value, nil
	})
	if err != nil {
		return nil, err
	}
	return r.WithSpec(spec), nil
}

// create creates an object. Its state comes from the watch, which may be faster than the answer, and may know already that
// the object is gone again.
func (b *Bridge) create(ctx context.Context, k *kindState, id objectID, wanted *shown) error {
	_, err := b.Client.Create(ctx, k.Kind.Kind, id.Namespace, wanted.document)
	if apiserver.IsExists(err) {
		return nil // the watch will report it
	}
	return err
}

// rewrite replaces a copy.
func (b *Bridge) rewrite(ctx context.Context, k *kindState, id objectID, version string, wanted *shown) error {
	var document map[string]any
	if err := json.Unmarshal(wanted.document, &document); err != nil {
		return err
	}
	document["metadata"].(map[string]any)["resourceVersion"] = version
	raw, err := json.Marshal(document)
	if err != nil {
		return err
	}
	o, err := b.Client.Replace(ctx, k.Kind.Kind, id.Name, raw)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := k.objects[id.Name]; wanted.content != "" && known != nil && known.copy && known.version == version {
		*known = objectState{uid: o.Meta.UID, generation: o.Meta.Generation, version: o.Meta.ResourceVersion, copy: true, content: wanted.content}
	} // or the watch was faster
	return nil
}
