package secrets

import (
	"iter"
	"log/slog"
	"runtime"
	"sync"
	"weak"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Opened is a store.Reader with the secrets of specs in plain text, for the code that uses them. It never writes. Its
// resources must not reach any other code. A secret that cannot be opened stays sealed and is useless. Safe for
// concurrent use.
type Opened struct {
	store.Reader
	fields *Fields
	log    *slog.Logger
	// open maps sealed resources to their opened form, one for each, for as long as the sealed one lives.
	open sync.Map // weak.Pointer[resources.Resource] to *resources.Resource
}

// Opened returns a reader of s with the secrets in plain text. log may be nil.
func (f *Fields) Opened(s store.Reader, log *slog.Logger) *Opened {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Opened{Reader: s, fields: f, log: log}
}

// Snapshot implements store.Reader.
func (o *Opened) Snapshot() store.Snapshot { return openedSnapshot{o.Reader.Snapshot(), o} }

// Changes implements store.Reader.
func (o *Opened) Changes(since uint64) ([]*store.Commit, bool) {
	return o.commits(o.Reader.Changes(since))
}

// Notable implements store.Reader.
func (o *Opened) Notable(since uint64) ([]*store.Commit, bool) {
	return o.commits(o.Reader.Notable(since))
}

func (o *Opened) commits(commits []*store.Commit, ok bool) ([]*store.Commit, bool) {
	for i, c := range commits {
		commits[i] = o.commit(c)
	}
	return commits, ok
}

// commit returns c, or a copy with opened resources if c contains sealed ones.
func (o *Opened) commit(c *store.Commit) *store.Commit {
	for i := range c.Changes {
		if isSealed(c.Changes[i].Old) || isSealed(c.Changes[i].New) {
			opened := *c
			opened.Changes = make([]store.Change, len(c.Changes))
			for j, change := range c.Changes {
				opened.Changes[j] = store.Change{Old: o.resource(change.Old), New: o.resource(change.New)}
			}
			return &opened
		}
	}
	return c
}

func isSealed(r *resources.Resource) bool { return r != nil && r.Spec.Sealed() }

func (o *Opened) resource(r *resources.Resource) *resources.Resource {
	if !isSealed(r) {
		return r
	}
	key := weak.Make(r)
	if found, ok := o.open.Load(key); ok {
		return found.(*resources.Resource)
	}
	opened, err := o.fields.Open(r)
	if err != nil {
		o.log.Error("cannot open a secret of a resource; the proxies that need it go without", "type", r.Type, "mesh", r.Mesh,
			"name", r.Name, "error", err)
		return r
	}
	found, there := o.open.LoadOrStore(key, opened)
	if !there {
		runtime.AddCleanup(r, func(k weak.Pointer[resources.Resource]) { o.open.Delete(k) }, key)
	}
	return found.(*resources.Resource)
}

type openedSnapshot struct {
	store.Snapshot
	opened *Opened
}

func (s openedSnapshot) Get(k resources.Key) *resources.Resource {
	return s.opened.resource(s.Snapshot.Get(k))
}

func (s openedSnapshot) List(q store.Query) iter.Seq[*resources.Resource] {
	all := s.Snapshot.List(q)
	if d, ok := resources.LookupStored(q.Type); !ok || d.Sensitive == nil {
		return all
	}
	return func(yield func(*resources.Resource) bool) {
		for r := range all {
			if !yield(s.opened.resource(r)) {
				return
			}
		}
	}
}
