package kds

import (
	"errors"
	"fmt"
	"time"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

// errOverLimit reports that a resource exceeds the zone's limits given what else the zone has stored, so the next
// session offers it again.
var errOverLimit = errors.New("over the limit")

// quota counts what a zone has stored here, against its limits, for one receiver. Only the receiver's goroutine uses
// it.
type quota struct {
	limits Limits
	// counted is the time at which usage was last read from the stores; zero for never.
	counted time.Time
	usage   usage
}

// usage is the number and size of a zone's resources.
type usage struct {
	resources map[resources.Type]int
	bytes     int64
}

// recount is how long a full quota is valid: another writer may have removed something.
const recount = 10 * time.Second

// change is the effect of a changeset on a type's usage. added and grown count what was admitted, over what was not, by
// limit.
type change struct {
	added int
	grown int64
	over  map[string]int
}

// admit returns an error if r, which replaces held if that is not nil, exceeds the limits beside what the changeset has
// admitted.
func (v *receiver) admit(p *changeset, held, r *resources.Resource) error {
	if v.quota == nil {
		return nil
	}
	if err := v.quota.admit(p, held, r, v.usage); err != nil {
		if p.change.over == nil {
			p.change.over = map[string]int{}
		}
		limit := tracker.LimitResources
		if errors.Is(err, errOverBytes) {
			limit = tracker.LimitBytes
		}
		p.change.over[limit]++
		return err
	}
	return nil
}

var errOverBytes = fmt.Errorf("%w of bytes", errOverLimit)

func (q *quota) admit(p *changeset, held, r *resources.Resource, read func() usage) error {
	if q.counted.IsZero() {
		q.usage, q.counted = read(), time.Now()
	}
	added, grown := 1, sizeOf(r)
	if held != nil {
		added, grown = 0, grown-sizeOf(held)
	}
	err := q.judge(p, r.Type, added, grown)
	if err != nil && time.Since(q.counted) > recount {
		q.usage, q.counted = read(), time.Now()
		err = q.judge(p, r.Type, added, grown)
	}
	if err == nil {
		p.change.added += added
		p.change.grown += grown
	}
	return err
}

func (q *quota) judge(p *changeset, t resources.Type, added int, grown int64) error {
	if have, most := q.usage.resources[t]+p.change.added, q.limits.most(t); added > 0 && have >= most {
		return fmt.Errorf("%w: the zone has %d of the type here, and may have %d: delete some, then resync the zone",
			errOverLimit, have, most)
	}
	if have := q.usage.bytes + p.change.grown; grown > 0 && have+grown > q.limits.Bytes {
		return fmt.Errorf("%w: the zone's resources have %d bytes here, and may have %d: delete some, then resync the zone", errOverBytes, have, q.limits.Bytes)
	}
	return nil
}

// usage reads the zone's usage from the stores.
func (v *receiver) usage() usage {
	u := usage{resources: map[resources.Type]int{}}
	for _, d := range resources.Descriptors() {
		if !v.arrival.Direction.Carries(d) {
			continue
		}
		for r := range v.copies(v.storeOf(d.Type).Snapshot(), d.Type) {
			u.resources[d.Type]++
			u.bytes += sizeOf(r)
		}
	}
	return u
}

// spend records the usage of an applied changeset, and the limits that it met.
func (v *receiver) spend(t resources.Type, p *changeset) {
	if v.quota == nil {
		return
	}
	q := v.quota
	if !q.counted.IsZero() {
		q.usage.resources[t] += p.change.added
		q.usage.bytes += p.change.grown
	}
	v.over.Meet(tracker.LimitResources, t, int64(q.limits.most(t)), p.change.over[tracker.LimitResources])
	v.over.Meet(tracker.LimitBytes, "", q.limits.Bytes, p.change.over[tracker.LimitBytes])
	if p.change.added < 0 && p.change.over[tracker.LimitResources] == 0 {
		v.over.End(tracker.LimitResources, t)
	}
	if p.change.grown < 0 && p.change.over[tracker.LimitBytes] == 0 {
		v.over.End(tracker.LimitBytes, "")
	}
}

// sizeOf returns the approximate size of a resource, in bytes.
func sizeOf(r *resources.Resource) int64 {
	size := len(r.Key.Name) + r.Spec.Size() + len(r.Status) + len(r.Version)
	for key, value := range r.Labels {
		size += len(key) + len(value)
	}
	return int64(size)
}
