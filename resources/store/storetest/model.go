package storetest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// model is a simple, slow store: it applies a batch to a copy of a map.
type model struct {
	state    map[resources.Key]*resources.Resource
	revision uint64
	commits  []*store.Commit
	window   int
	now      time.Time
	// kept is the name whose changes are background.
	kept string
}

func (m *model) background(c store.Change) bool { return c.Key().Name == m.kept }

var errRefused = errors.New("refused by the check")

// modelOp is an op that the model can read, because conditions are opaque.
type modelOp struct {
	put      *resources.Resource
	key      resources.Key
	cond     int // 0 always, 1 absent, 2 at revision
	revision uint64
}

func (o modelOp) op() store.Op {
	op := store.Op{Put: o.put, Delete: o.key}
	switch o.cond {
	case 1:
		op.If = store.IfAbsent()
	case 2:
		op.If = store.IfRevision(o.revision)
	}
	return op
}

func (m *model) apply(ops []modelOp, refuse bool) error {
	next := maps.Clone(m.state)
	var touched []resources.Key // In the order of the first op with an effect.
	touch := func(k resources.Key) {
		if !slices.Contains(touched, k) {
			touched = append(touched, k)
		}
	}
	for _, o := range ops {
		old := next[o.key]
		switch {
		case o.cond == 1 && old != nil, o.cond == 2 && old != nil && old.Revision != o.revision, o.cond == 2 &&
			old == nil && o.put != nil:
			return store.ErrConflict
		case o.cond == 2 && old == nil:
			return store.ErrNotFound
		}
		switch {
		case o.put == nil && old != nil:
			delete(next, o.key)
			touch(o.key)
		case o.put == nil:
		case old == nil || !old.SameContent(o.put):
			r := o.put.Clone()
			r.Revision, r.ModificationTime = m.revision+1, m.now
			if r.CreationTime.IsZero() {
				r.CreationTime = m.now
				if old != nil {
					r.CreationTime = old.CreationTime
				}
			}
			next[o.key] = r
			touch(o.key)
		}
	}
	if refuse {
		return errRefused
	}
	commit := &store.Commit{Revision: m.revision + 1}
	for _, key := range touched {
		old, r := m.state[key], next[key]
		if old != nil && r != nil && old.SameContent(r) {
			next[key] = old
		} else if old != r {
			commit.Changes = append(commit.Changes, store.Change{Old: old, New: r})
		}
	}
	m.state = next
	if len(commit.Changes) > 0 {
		m.commits = append(m.commits, commit)
		m.revision++
	}
	return nil
}

func (m *model) list(q store.Query) []*resources.Resource {
	var out []*resources.Resource
	for _, r := range m.state {
		match := r.Type == q.Type && (q.Mesh == "" || r.Mesh == q.Mesh) && (q.Namespace == nil || r.Namespace == *q.Namespace)
		for k, v := range q.Labels {
			got, ok := r.Labels[k]
			match = match && ok && got == v
		}
		if match {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *resources.Resource) int {
		return cmp.Or(cmp.Compare(a.Mesh, b.Mesh), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

var (
	drawType   = rapid.SampledFrom([]resources.Type{resources.TypeMeshTimeout, resources.TypeMeshTrafficPermission})
	drawPart   = rapid.SampledFrom([]string{"", "a", "a-b", "ab"})
	drawName   = rapid.SampledFrom([]string{"x", "xy", "y"})
	drawLabels = rapid.MapOfN(rapid.SampledFrom([]string{"app", "app2", "zone"}),
		rapid.SampledFrom([]string{"", "1", "12"}), 0, 3)
)

func drawKey(t *rapid.T) resources.Key {
	return resources.Key{Type: drawType.Draw(t, "type"), Mesh: drawPart.Draw(t, "mesh"),
		Namespace: drawPart.Draw(t, "namespace"), Name: drawName.Draw(t, "name")}
}

func (m *model) drawOp(t *rapid.T) modelOp {
	o := modelOp{key: drawKey(t), cond: rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "condition")}
	if known := slices.SortedFunc(maps.Keys(m.state), compareKeys); len(known) > 0 && rapid.Bool().Draw(t, "known") {
		o.key = rapid.SampledFrom(known).Draw(t, "key")
	}
	if o.cond == 2 {
		o.revision = rapid.Uint64Range(0, m.revision+1).Draw(t, "revision")
		if r := m.state[o.key]; r != nil && rapid.Bool().Draw(t, "right") {
			o.revision = r.Revision
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "kind") > 0 {
		o.put = Resource(o.key, rapid.IntRange(0, 2).Draw(t, "content"), drawLabels.Draw(t, "labels"))
		if rapid.IntRange(0, 4).Draw(t, "created") == 0 {
			o.put.CreationTime = time.Unix(1e9, 0).UTC()
		}
	}
	return o
}

func compareKeys(a, b resources.Key) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Mesh, b.Mesh), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name))
}

func testModel(t *testing.T, open Open) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{state: map[resources.Key]*resources.Resource{}, window: rapid.IntRange(1, 20).Draw(rt, "window"),
			now: time.Unix(2e9, 0).UTC(), kept: drawName.Draw(rt, "background")}
		s := open(t, store.ViewConfig{WindowCommits: m.window, Now: func() time.Time { return m.now },
			Background: m.background})
		defer func() { _ = s.Close() }()
		var kept store.Snapshot
		var keptModel model
		for range rapid.IntRange(1, 30).Draw(rt, "batches") {
			m.now = m.now.Add(time.Second)
			m.step(rt, s)
			m.compare(rt, s.Snapshot())
			m.compareChanges(rt, s)
			m.compareNotable(rt, s)
			if kept == nil || rapid.IntRange(0, 4).Draw(rt, "keep") == 0 {
				kept, keptModel = s.Snapshot(), *m
			}
		}
		keptModel.compare(rt, kept)
	})
}

func (m *model) step(t *rapid.T, s store.Store) {
	var batch store.Batch
	var ops []modelOp
	for range rapid.IntRange(0, 4).Draw(t, "ops") {
		o := m.drawOp(t)
		ops = append(ops, o)
		batch.Ops = append(batch.Ops, o.op())
	}
	refuse := rapid.IntRange(0, 9).Draw(t, "refuse") == 0
	before := *m
	var seen store.Snapshot
	batch.Check = func(now store.Snapshot) error {
		seen = now
		if refuse {
			return errRefused
		}
		return nil
	}
	want := m.apply(ops, refuse)
	got, err := s.Apply(context.Background(), batch)
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
	if seen != nil {
		before.compare(t, seen)
	}
	if err != nil {
		return
	}
	wantCommit := &store.Commit{Revision: m.revision}
	if m.revision > before.revision {
		wantCommit = m.commits[len(m.commits)-1]
	}
	compareCommit(t, got, wantCommit)
}

func (m *model) compare(t *rapid.T, s store.Snapshot) {
	if s.Revision() != m.revision {
		t.Fatalf("at revision %d, want %d", s.Revision(), m.revision)
	}
	for k, r := range m.state {
		if got := s.Get(k); !Equal(got, r) {
			t.Fatalf("%s: got %s want %s", k, Describe([]*resources.Resource{got}), Describe([]*resources.Resource{r}))
		}
	}
	q := store.Query{Type: drawType.Draw(t, "query type"), Mesh: drawPart.Draw(t, "query mesh"),
		Labels: drawLabels.Draw(t, "query labels")}
	if rapid.Bool().Draw(t, "query by namespace") {
		ns := drawPart.Draw(t, "query namespace")
		q.Namespace = &ns
	}
	got := slices.Collect(s.List(q))
	if want := m.list(q); !slices.EqualFunc(got, want, Equal) {
		t.Fatalf("%+v: got\n%swant\n%s", q, Describe(got), Describe(want))
	}
	all := 0
	for k := range m.state {
		if k.Type == q.Type {
			all++
		}
	}
	if got := s.Total(q.Type); got != all {
		t.Fatalf("%s of all meshes: %d, want %d", q.Type, got, all)
	}
	for _, mesh := range []string{"", q.Mesh} {
		want := 0
		for k := range m.state {
			if k.Type == q.Type && k.Mesh == mesh {
				want++
			}
		}
		if got := s.Count(q.Type, mesh); got != want {
			t.Fatalf("%s of mesh %q: %d, want %d", q.Type, mesh, got, want)
		}
	}
	if absent := drawKey(t); m.state[absent] == nil && s.Get(absent) != nil {
		t.Fatalf("%s should not be there", absent)
	}
}

func (m *model) compareChanges(t *rapid.T, s store.Store) {
	since := rapid.Uint64Range(0, m.revision+1).Draw(t, "since")
	got, ok := s.Changes(since)
	reached := since <= m.revision && m.revision-since <= uint64(m.window)
	if ok != reached {
		t.Fatalf("changes since %d at %d with a window of %d: %t", since, m.revision, m.window, ok)
	}
	if !ok {
		return
	}
	want := m.commits[since:]
	if len(got) != len(want) {
		t.Fatalf("changes since %d: got %d commits, want %d", since, len(got), len(want))
	}
	for i := range got {
		compareCommit(t, got[i], want[i])
	}
}

// compareNotable expects the commits with a change that is not background, from a window that only they fill.
func (m *model) compareNotable(t *rapid.T, s store.Store) {
	since := rapid.Uint64Range(0, m.revision+1).Draw(t, "notable since")
	var notable []*store.Commit
	for _, c := range m.commits {
		if slices.ContainsFunc(c.Changes, func(c store.Change) bool { return !m.background(c) }) {
			notable = append(notable, c)
		}
	}
	floor := uint64(0)
	if past := len(notable) - m.window; past > 0 {
		floor, notable = notable[past-1].Revision, notable[past:]
	}
	got, ok := s.Notable(since)
	if reached := since <= m.revision && since >= floor; ok != reached {
		t.Fatalf("notable since %d at %d with a floor of %d: %t", since, m.revision, floor, ok)
	}
	if !ok {
		return
	}
	want := slices.DeleteFunc(notable, func(c *store.Commit) bool { return c.Revision <= since })
	if len(got) != len(want) {
		t.Fatalf("notable since %d: got %d commits, want %d", since, len(got), len(want))
	}
	for i := range got {
		compareCommit(t, got[i], want[i])
	}
}

func compareCommit(t *rapid.T, got, want *store.Commit) {
	same := func(a, b store.Change) bool { return Equal(a.Old, b.Old) && Equal(a.New, b.New) }
	if got.Revision != want.Revision || !slices.EqualFunc(got.Changes, want.Changes, same) {
		t.Fatalf("got commit %d with %d changes, want %d with %d, or they differ", got.Revision, len(got.Changes),
			want.Revision, len(want.Changes))
	}
}
