package tracker

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// Names of limits in SyncStatus and metrics.
const (
	LimitResources = "resources"
	LimitBytes     = "bytes"
	LimitRefusals  = "refusals"
	LimitResume    = "resume"
	LimitStreams   = "streams"
	LimitCalls     = "calls"
	LimitChanges   = "changes"
)

// OverLimit is a limit that a peer has met. Nothing else reports it.
type OverLimit struct {
	// Limit is "resources", "bytes", "refusals", "resume", "streams", "calls" or "changes"; Type is empty for a limit of
	// all types together.
	Limit string         `json:"limit"`
	Type  resources.Type `json:"type,omitempty"`
	Most  int64          `json:"most"`
	// Count is how often the limit was exceeded since.
	Count int       `json:"count"`
	Since time.Time `json:"since"`
}

// Over holds the limits that one peer has met. Safe for concurrent use; a nil *Over records nothing.
type Over struct {
	now func() time.Time
	mu  sync.Mutex
	met map[overKey]*OverLimit // guarded by mu

	pulse *Pulse
}

// NewOver returns an Over that has met no limit; now is its clock, and pulse beats with its changes.
func NewOver(now func() time.Time, pulse *Pulse) *Over { return &Over{now: now, pulse: pulse} }

type overKey struct {
	limit string
	typ   resources.Type
}

// Meet counts n more items over a limit.
func (o *Over) Meet(limit string, t resources.Type, most int64, n int) {
	if o == nil || n == 0 {
		return
	}
	defer o.pulse.Beat()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.met == nil {
		o.met = map[overKey]*OverLimit{}
	}
	one := o.met[overKey{limit, t}]
	if one == nil {
		one = &OverLimit{Limit: limit, Type: t, Most: most, Since: o.now()}
		o.met[overKey{limit, t}] = one
	}
	one.Count += n
}

// since returns the time since which a limit of all types is met, and whether it is.
func (o *Over) since(limit string) (time.Time, bool) {
	if o == nil {
		return time.Time{}, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if one := o.met[overKey{limit, ""}]; one != nil {
		return one.Since, true
	}
	return time.Time{}, false
}

// End removes a limit.
func (o *Over) End(limit string, t resources.Type) {
	if o == nil {
		return
	}
	defer o.pulse.Beat()
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.met, overKey{limit, t})
}

// Replace replaces all limits by another replica's.
func (o *Over) Replace(list []OverLimit) {
	defer o.pulse.Beat()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.met = make(map[overKey]*OverLimit, len(list))
	for i := range list {
		o.met[overKey{list[i].Limit, list[i].Type}] = &list[i]
	}
}

// List returns the limits, ordered by limit and type.
func (o *Over) List() []OverLimit {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []OverLimit
	for _, one := range o.met {
		out = append(out, *one)
	}
	slices.SortFunc(out,
		func(a, b OverLimit) int { return cmp.Or(cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Type, b.Type)) })
	return out
}
