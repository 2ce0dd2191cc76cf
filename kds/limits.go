package kds

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// Limits bound what one zone can have its global keep. A large mesh does not meet the defaults; a field that is zero is the default.
type Limits struct {
	// Resources is how many resources of one type a zone may have here. One more is refused by name, and nothing is removed.
	Resources int
	// Bytes is how large all resources of a zone may be together. What would make them larger is refused by name.
	Bytes int64
}

// Defaults of Limits.
const (
	DefaultZoneResources       = 50_000
	DefaultZoneBytes     int64 = 256 << 20
)

// maxZoneTrusts is how many MeshTrusts a zone may have here: each goes to every proxy of its mesh, in all zones.
const maxZoneTrusts = 500

// most is how many resources of a type a zone may have.
func (l Limits) most(t resources.Type) int {
	if t == resources.TypeMeshTrust {
		return min(l.Resources, maxZoneTrusts)
	}
	return l.Resources
}

// Bounds of what is remembered of a peer beside its resources.
const (
	// maxRefusals is how many refusals are kept by name, and maxRefusalBytes how large they may be together; beyond it they are
	// counted only. keptRefusals stay when the peer goes.
	maxRefusals     = 10_000
	maxRefusalBytes = 4 << 20
	keptRefusals    = 1000
	// maxReason is how much is kept of why, in bytes.
	maxReason = 512
	// maxRefusedName is more than any name that can be stored. Of a longer one nothing is remembered.
	maxRefusedName = 2*maxWireName + 1
	// maxVersion bounds the version of a resource, which is a hash or a counter.
	maxVersion = 256
	// maxHave bounds what a peer says that it has, of all types of a stream together, in bytes of memory. One that has more is
	// sent complete lists.
	maxHave = 32 << 20
	// maxHeldStreams is how many streams a zone may hold open beside those of its session.
	maxHeldStreams = 16
)

// The bounds as SyncStatus and metrics name them.
const (
	limitResources = "resources"
	limitBytes     = "bytes"
	limitRefusals  = "refusals"
	limitResume    = "resume"
	limitStreams   = "streams"
)

func (l Limits) filled() Limits {
	if l.Resources == 0 {
		l.Resources = DefaultZoneResources
	}
	if l.Bytes == 0 {
		l.Bytes = DefaultZoneBytes
	}
	return l
}

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

// overLimits are the bounds that one peer has met. Safe for concurrent use; nil remembers nothing.
type overLimits struct {
	mu  sync.Mutex
	met map[overKey]*OverLimit // guarded by mu
}

type overKey struct {
	limit string
	typ   resources.Type
}

// meet counts n more that were over a bound.
func (o *overLimits) meet(limit string, t resources.Type, most int64, n int) {
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
func (o *overLimits) since(limit string) (time.Time, bool) {
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

// end forgets that a bound was met.
func (o *overLimits) end(limit string, t resources.Type) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.met, overKey{limit, t})
}

// replace takes what another replica says for all that is remembered.
func (o *overLimits) replace(list []OverLimit) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.met = make(map[overKey]*OverLimit, len(list))
	for i := range list {
		o.met[overKey{list[i].Limit, list[i].Type}] = &list[i]
	}
}

// list is ordered by limit and type.
func (o *overLimits) list() []OverLimit {
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
