package tracker

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// The bounds as SyncStatus and metrics name them.
const (
	LimitResources = "resources"
	LimitBytes     = "bytes"
	LimitRefusals  = "refusals"
	LimitResume    = "resume"
	LimitStreams   = "streams"
)

// OverLimit is a bound that a peer has met. Nobody else notices, so it is said here.
type OverLimit struct {
	// Limit is "resources", "bytes", "refusals", "resume" or "streams"; Type is empty where it is about all.
	Limit string         `json:"limit"`
	Type  resources.Type `json:"type,omitempty"`
	Most  int64          `json:"most"`
	// Count is how often something was over it since.
	Count int       `json:"count"`
	Since time.Time `json:"since"`
}

// Over are the bounds that one peer has met. Safe for concurrent use; nil remembers nothing.
type Over struct {
	mu  sync.Mutex
	met map[overKey]*OverLimit // guarded by mu
}

type overKey struct {
	limit string
	typ   resources.Type
}

// Meet counts n more that were over a bound.
func (o *Over) Meet(limit string, t resources.Type, most int64, n int) {
	if o == nil || n == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.met == nil {
		o.met = map[overKey]*OverLimit{}
	}
	one := o.met[overKey{limit, t}]
	if one == nil {
		one = &OverLimit{Limit: limit, Type: t, Most: most, Since: time.Now()}
		o.met[overKey{limit, t}] = one
	}
	one.Count += n
}

// since reports whether a bound of all types is met, and since when.
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

// End forgets that a bound was met.
func (o *Over) End(limit string, t resources.Type) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.met, overKey{limit, t})
}

// Replace takes what another replica says for all that is remembered.
func (o *Over) Replace(list []OverLimit) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.met = make(map[overKey]*OverLimit, len(list))
	for i := range list {
		o.met[overKey{list[i].Limit, list[i].Type}] = &list[i]
	}
}

// List is ordered by limit and type.
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
	slices.SortFunc(out, func(a, b OverLimit) int { return cmp.Or(cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Type, b.Type)) })
	return out
}
