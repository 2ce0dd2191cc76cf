package secrets

import (
	"context"
	"errors"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Fields seals the secrets in specs (resources.Sensitive). Each is bound to its resource: it cannot be opened in
// another one. Safe for concurrent use.
type Fields struct{ box *Box }

// NewFields returns Fields that seal with b.
func NewFields(b *Box) *Fields { return &Fields{box: b} }

// purposeOf returns a purpose that is unique to k: names contain no slash.
func purposeOf(k resources.Key) string {
	return strings.Join([]string{"field", string(k.Type), k.Mesh, k.Namespace, k.Name}, "/")
}

// Seal returns r with its secrets sealed, or r itself if there is nothing to seal. old is the stored resource, or nil.
// A value that did not change keeps its sealed form, so that it causes no write. A value that another server keeps
// stays unchanged.
func (f *Fields) Seal(r, old *resources.Resource) (*resources.Resource, error) {
	var before map[string]string
	spec, err := resources.EditSecrets(r, func(path, value string) (string, error) {
		sealed, is := resources.SealedBytes(value)
		if is {
			if _, err := f.box.Open(sealed, purposeOf(r.Key)); err == nil {
				return value, nil
			}
		} else if resources.IsHidden(value) {
			return value, nil
		}
		if before == nil {
			before = sealedIn(old)
		}
		if kept := before[path]; kept != "" {
			if was, err := f.open(old.Key, kept); err == nil && was == value {
				return kept, nil
			}
		}
		sealed, err := f.box.Seal([]byte(value), purposeOf(r.Key))
		return resources.SealedText(sealed), err
	})
	if err != nil {
		return nil, err
	}
	return r.WithSpec(spec), nil
}

// sealedIn returns the sealed values of a resource by path.
func sealedIn(r *resources.Resource) map[string]string {
	out := map[string]string{}
	if r == nil || !r.Spec.Sealed() {
		return out
	}
	_, _ = resources.EditSecrets(r, func(path, value string) (string, error) { // a spec that does not decode has none
		out[path] = value
		return value, nil
	})
	return out
}

// Open returns r with its secrets in plain text, or r itself if nothing is sealed. Errors wrap ErrWrongKey or
// ErrDamaged.
func (f *Fields) Open(r *resources.Resource) (*resources.Resource, error) {
	if !r.Spec.Sealed() {
		return r, nil
	}
	spec, err := resources.EditSecrets(r, func(_, value string) (string, error) { return f.open(r.Key, value) })
	if err != nil {
		return nil, err
	}
	return r.WithSpec(spec), nil
}

// open decrypts a sealed value and returns any other value unchanged.
func (f *Fields) open(key resources.Key, value string) (string, error) {
	sealed, is := resources.SealedBytes(value)
	if !is {
		return value, nil
	}
	plain, err := f.box.Open(sealed, purposeOf(key))
	return string(plain), err
}

// Over wraps s for all writers: it seals the secrets of each put, so that no writer can forget to.
func (f *Fields) Over(s store.Store) store.Store { return &sealing{Store: s, fields: f} }

type sealing struct {
	store.Store
	fields *Fields
}

// Apply implements store.Store.
func (s *sealing) Apply(ctx context.Context, b store.Batch) (*store.Commit, error) {
	var snapshot store.Snapshot
	copied := false
	for i := range b.Ops {
		put := b.Ops[i].Put
		if put == nil || put.Spec == nil || put.Descriptor().Sensitive == nil {
			continue
		}
		if snapshot == nil {
			snapshot = s.Snapshot()
		}
		sealed, err := s.fields.Seal(put, snapshot.Get(put.Key))
		if err != nil {
			return nil, errors.Join(store.ErrInvalid, err)
		}
		if sealed == put {
			continue
		}
		if !copied { // the caller owns the operations
			b.Ops, copied = append([]store.Op(nil), b.Ops...), true
		}
		b.Ops[i].Put = sealed
	}
	return s.Store.Apply(ctx, b)
}

// maxSealedAtOnce bounds the resources of one batch of SealStored.
const maxSealedAtOnce = 200

// SealStored seals the secrets that an older version stored in s in plain text, and returns the number of resources
// that it changed. A batch fails with ErrConflict if another writer changes one of its resources meanwhile.
func (f *Fields) SealStored(ctx context.Context, s store.Store) (changed int, err error) {
	var batch store.Batch
	flush := func() error {
		if len(batch.Ops) == 0 {
			return nil
		}
		_, err := s.Apply(ctx, batch)
		changed += len(batch.Ops)
		batch.Ops = nil
		return err
	}
	for _, d := range resources.Stored() {
		if d.Sensitive == nil {
			continue
		}
		for r := range s.Snapshot().List(store.Query{Type: d.Type}) {
			sealed, err := f.Seal(r, r)
			if err != nil {
				return changed, err
			}
			if sealed == r {
				continue
			}
			if batch.Ops = append(batch.Ops,
				store.Op{Put: sealed, If: store.IfRevision(r.Revision)}); len(batch.Ops) < maxSealedAtOnce {
				continue
			}
			if err := flush(); err != nil {
				return changed, err
			}
		}
	}
	return changed, flush()
}
