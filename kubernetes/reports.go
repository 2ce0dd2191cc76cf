package kubernetes

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

const (
	// reportInterval is the minimum interval between two writes of one object's conditions.
	reportInterval = time.Second
	// maxReportWait limits the time between two checks of a change that is still on its way.
	maxReportWait = 10 * time.Second
	// reportWriters limits the concurrent writes of conditions.
	reportWriters = 8
	// pulseInterval is how often the server checks whether rollouts may have changed.
	pulseInterval = time.Second
)

// dueLocked schedules a check of an object's conditions.
func (b *Bridge) dueLocked(id objectID, in time.Duration) {
	at := b.Now().Add(in)
	if k := b.kinds[id.Type]; k != nil {
		if o := k.objects[id.Name]; o != nil && o.reported.Add(reportInterval).After(at) {
			at = o.reported.Add(reportInterval)
		}
	}
	if old, ok := b.due[id]; !ok || at.Before(old) {
		b.due[id] = at
		wake(b.report)
	}
}

// reports writes conditions until ctx ends.
func (b *Bridge) reports(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	pulse := time.NewTicker(pulseInterval)
	defer timer.Stop()
	defer pulse.Stop()
	s := sweep{bridge: b, pulse: b.Pulse()} // each object is checked when it is new
	for {
		if next, ok := b.nextDue(); ok {
			timer.Reset(max(next.Sub(b.Now()), 0))
		} else {
			timer.Reset(time.Hour)
		}
		swept, began := false, time.Now()
		select {
		case <-ctx.Done():
			return nil
		case <-b.report:
		case <-timer.C:
		case <-pulse.C:
			began = time.Now()
			swept = s.step()
		}
		b.reportAll(ctx, b.takeDue())
		if swept {
			s.rest(time.Since(began))
		}
	}
}

func (b *Bridge) nextDue() (next time.Time, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, at := range b.due {
		if !ok || at.Before(next) {
			next, ok = at, true
		}
	}
	return next, ok
}

func (b *Bridge) takeDue() []objectID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []objectID
	now := b.Now()
	for id, at := range b.due {
		if !at.After(now) {
			out = append(out, id)
			delete(b.due, id)
		}
	}
	return out
}

func (b *Bridge) reportAll(ctx context.Context, ids []objectID) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reportWriters)
	for _, id := range ids {
		group.Go(func() error { b.reportOne(ctx, id); return nil })
	}
	_ = group.Wait() // none fails
}

// reportOne compares the conditions of an object with the known state, and writes them if they differ.
func (b *Bridge) reportOne(ctx context.Context, id objectID) {
	b.mu.Lock()
	o := b.kinds[id.Type].objects[id.Name]
	if o == nil || o.copy {
		b.mu.Unlock()
		return
	}
	uid, key, was, observed := o.uid, o.key, o.conditions, o.observed
	n := conditionInputs{refused: o.refused, unjudged: o.unjudged, generation: o.generation}
	b.mu.Unlock()
	if key != (resources.Key{}) {
		n.stored = b.Store.Snapshot().Get(key)
	}
	if n.stored != nil && n.stored.Object.UID != uid {
		n.stored = nil
	}
	if n.stored != nil && n.refused == nil {
		n.others, n.rollout, n.author = b.Routes.ConditionsOf(n.stored), b.Rollout(n.stored), b.Routes.Author(n.stored)
	}
	is := b.stamped(n.conditions(), was, n.generation)
	final := settled(is)
	var err error
	differs := observed != n.generation || !slices.Equal(is, was)
	if differs {
		err = b.writeConditions(ctx, id, uid, n.generation, is)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if o = b.kinds[id.Type].objects[id.Name]; o == nil || o.uid != uid {
		return
	}
	if differs {
		o.reported = b.Now() // a failed write counts, too
		if next := o.reported.Add(reportInterval); b.due[id].Before(next) && !b.due[id].IsZero() {
			b.due[id] = next // it was scheduled during this write
		}
	}
	switch {
	case err != nil && apiserver.IsRefused(err):
		b.Log.Debug("conditions cannot be written", "type", id.Type, "object", id.Name.String(), "error", err)
		o.wait = maxReportWait
	case err == nil && differs:
		o.conditions, o.observed = is, n.generation
	}
	if err != nil || !final {
		o.wait = min(max(2*o.wait, reportInterval/2), maxReportWait)
		b.dueLocked(id, o.wait)
	} else {
		o.wait = 0
	}
}

// settled reports whether nothing is on its way.
func settled(list []condition) bool {
	for _, c := range list {
		if c.Type == conditionProgrammed && c.Reason == "Pending" || c.Type == resources.ConditionAccepted && c.Reason == "Pending" {
			return false
		}
	}
	return true
}

// stamped adds Kubernetes' fields to conditions. A condition whose status did not change keeps its transition time.
func (b *Bridge) stamped(list []resources.Condition, was []condition, generation int64) []condition {
	now := b.Now().UTC().Format(time.RFC3339)
	out := make([]condition, 0, len(list))
	for _, c := range list {
		one := condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message,
			ObservedGeneration: generation, LastTransitionTime: now}
		if i := slices.IndexFunc(was, func(w condition) bool { return w.Type == c.Type && w.Status == c.Status }); i >= 0 {
			one.LastTransitionTime = was[i].LastTransitionTime
		}
		if slices.ContainsFunc(out, func(o condition) bool { return o.Type == c.Type }) {
			continue // Kubernetes accepts one of each type
		}
		out = append(out, one)
	}
	return out
}

func (b *Bridge) writeConditions(ctx context.Context, id objectID, uid string, generation int64, list []condition) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]string{"uid": uid},
		"status": map[string]any{"observedGeneration": generation, "conditions": list}})
	if err != nil {
		return err
	}
	o, err := b.Client.Patch(ctx, b.kinds[id.Type].Kind.Kind, id.Name, "status", patch)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.kinds[id.Type].objects[id.Name]; known != nil && known.uid == o.Meta.UID &&
		known.generation == o.Meta.Generation && maps.Equal(known.labels, o.Meta.Labels) {
		known.version = o.Meta.ResourceVersion // the watch need not report it
	}
	return nil
}

// sweep checks all objects again after an event that may affect any of them.
type sweep struct {
	bridge *Bridge
	pulse  string
	left   []objectID
	again  bool // another event happened since it began
	next   time.Time
}

// sweepRest is how much longer the sweep rests than a step took: a rollout reads all proxies, and there may be many.
const sweepRest = 9

func (s *sweep) rest(took time.Duration) { s.next = time.Now().Add(sweepRest * took) }

// step checks some objects, using a small share of a core. A sweep finishes before the next begins, so under constant
// events each object gets its turn. It returns false while the sweep rests.
func (s *sweep) step() bool {
	b := s.bridge
	if time.Now().Before(s.next) {
		return false
	}
	if pulse := b.Pulse(); pulse != s.pulse {
		s.pulse, s.again = pulse, true
	}
	if s.again && len(s.left) == 0 {
		s.again = false
		b.mu.Lock()
		for _, k := range b.kinds {
			for name, o := range k.objects {
				if !o.copy {
					s.left = append(s.left, objectID{k.Type, name})
				}
			}
		}
		b.mu.Unlock()
	}
	n := min(len(s.left), maxSweep)
	b.mu.Lock()
	for _, id := range s.left[:n] {
		b.dueLocked(id, 0)
	}
	b.mu.Unlock()
	s.left = s.left[n:]
	return true
}

// maxSweep limits the objects that a sweep checks each second.
const maxSweep = 50

// followStore schedules the consequences of store changes, until ctx ends.
func (b *Bridge) followStore(ctx context.Context) error {
	since, next := b.Store.Changed()
	b.projectAll()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next:
		}
		var revision uint64
		revision, next = b.Store.Changed()
		commits, ok := b.Store.Changes(since)
		since = revision
		if !ok {
			b.projectAll()
			continue
		}
		for _, c := range commits {
			b.followCommit(c)
			since = max(since, c.Revision)
		}
	}
}

func (b *Bridge) followCommit(c *store.Commit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, change := range c.Changes {
		if change.Key().Type == resources.TypeMesh {
			wake(b.work)
		}
		if id, ok := b.idOf(change.Key()); ok {
			b.projectLocked(id)
		}
	}
}
