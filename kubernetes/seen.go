package kubernetes

import (
	"fmt"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// sawCopy notes an object that this server made.
func (b *Bridge) sawCopy(one *queued) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, o := b.kinds[one.id.Type], one.change.object
	known := k.objects[one.id.Name]
	if known == nil || known.uid != o.Meta.UID {
		b.replacedLocked(known)
		known = &objectState{uid: o.Meta.UID}
		k.objects[one.id.Name] = known
	}
	changed := known.generation != 0 && known.generation != o.Meta.Generation
	known.copy, known.generation, known.version = true, o.Meta.Generation, o.Meta.ResourceVersion
	if known.content = o.Meta.Annotations[annotationContent]; changed {
		known.content = "" // someone else may have changed it
	}
	b.projectLocked(one.id)
}

// sawForeign notes an object of a type that users do not write as objects, created while the webhook was down.
func (b *Bridge) sawForeign(one *queued) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := one.change.object
	conditions, observed := statusIn(o)
	b.kinds[one.id.Type].objects[one.id.Name] = &objectState{uid: o.Meta.UID, generation: o.Meta.Generation, version: o.Meta.ResourceVersion,
		labels: o.Meta.Labels, conditions: conditions, observed: observed, refused: b.unwritable(one.id.Type)}
	b.dueLocked(one.id, 0)
}

// unwritable returns the error for an object of a type that users do not write as objects.
func (b *Bridge) unwritable(t resources.Type) error {
	reason := fmt.Sprintf("the servers create every %s: it is read-only", t)
	if t == resources.TypeZone {
		reason = "a Zone is created with its join string: use causewayctl zone create on the global"
	}
	return api.BadField("kind", "%s", reason)
}
