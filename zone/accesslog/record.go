package accesslog

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Bounds of a record: its size in bytes, and the values that its JSON has.
const (
	maxRecord       = 4 << 20
	maxRecordValues = 200_000
	maxRecordDepth  = 6
	// lostRoom is what a time takes that entries which are left out give a policy.
	lostRoom = len(`,"lost":"2006-01-02T15:04:05.999999999Z"`)
)

// Kind is a kind of observation.
type Kind int

// The kinds. Shadowed observations are those that a shadow rule would deny.
const (
	Everything Kind = iota
	Denied
	Shadowed
)

// Selection selects observations. A zero KRI stands for all Dataplanes, and an empty mesh for all meshes.
type Selection struct {
	Kind      Kind
	Mesh      string
	Dataplane resources.KRI
}

func (s *Selection) selects(e *Entry) bool {
	if s.Kind == Denied && e.Allowed || s.Kind == Shadowed && e.ShadowPolicy == "" {
		return false
	}
	kri, err := resources.ParseKRI(e.Inbound)
	if err != nil || s.Dataplane != (resources.KRI{}) && kri.WithSection("") != s.Dataplane {
		return false
	}
	if by, err := resources.ParseKRI(e.ShadowPolicy); s.Kind == Shadowed && (err != nil || s.Mesh != "" && by.Mesh != s.Mesh) {
		return false
	}
	return s.Mesh == "" || s.Kind == Shadowed || kri.Mesh == s.Mesh
}

// Record is what a zone tells its global of what its proxies reported.
type Record struct {
	// Collecting means that proxies report at all.
	Collecting bool      `json:"collecting"`
	Since      time.Time `json:"since"`
	Dropped    uint64    `json:"dropped,omitempty"`
	// Entries have the most recent first.
	Entries []recorded `json:"entries"`
	// Policies, of a Record of shadow denials, are the zone's permissions that have some.
	Policies []shadowPolicy `json:"policies,omitempty"`
}

// recorded is an Entry as it travels.
type recorded struct {
	Inbound      string         `json:"inbound"`
	Client       string         `json:"client,omitempty"`
	Method       string         `json:"method,omitempty"`
	PathPrefix   string         `json:"pathPrefix,omitempty"`
	Policy       string         `json:"policy"`
	Allowed      bool           `json:"allowed,omitempty"`
	ShadowPolicy string         `json:"shadow,omitempty"`
	Count        uint64         `json:"count"`
	First        time.Time      `json:"first"`
	Last         time.Time      `json:"last"`
	Paths        []recordedPath `json:"paths,omitempty"`
	Elsewhere    uint64         `json:"elsewhere,omitempty"`
}

type recordedPath struct {
	Path  string    `json:"path"`
	Count uint64    `json:"count"`
	Last  time.Time `json:"last"`
}

// shadowPolicy is a permission with shadow denials.
type shadowPolicy struct {
	KRI string `json:"kri"`
	// Changed is when it last changed, and Lost when the last of its denials was seen that are not kept.
	Changed time.Time `json:"changed"`
	Lost    time.Time `json:"lost,omitzero"`
}

// shadowPolicies returns the permissions of a mesh, or of all if it is empty, that have shadow denials.
func shadowPolicies(snap store.Snapshot, mesh string, s *summary) []shadowPolicy {
	var out []shadowPolicy
	for r := range snap.List(store.Query{Type: resources.TypeMeshTrafficPermission, Mesh: mesh}) {
		if hasShadow(r) {
			kri := resources.KRIOf(r).String()
			out = append(out, shadowPolicy{KRI: kri, Changed: r.ModificationTime, Lost: s.lost(kri)})
		}
	}
	return out
}

var errRecordTooLarge = errors.New("there are more permissions with shadow denials than an answer has room for: name a mesh")

// AppendRecord appends the Record of what is selected, as JSON. The most recent entries that a Record has room for are in
// it; the requests of the others count as dropped.
func (c *Config) AppendRecord(dst []byte, of Selection) ([]byte, error) {
	s := c.Journal.read(of.selects)
	r := &Record{Collecting: c.Collecting, Since: s.since.UTC(), Dropped: s.dropped, Entries: []recorded{}}
	if of.Kind == Shadowed {
		r.Policies = shadowPolicies(c.Store.Snapshot(), of.Mesh, &s)
	}
	head, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	room, values := maxRecord-len(head)-64-lostRoom*len(r.Policies), maxRecordValues-4*len(r.Policies)-32
	for i := range s.entries {
		one, err := json.Marshal(recordedOf(&s.entries[i]))
		if err != nil {
			return nil, err
		}
		room -= len(one) + 1
		if values -= 14 + 4*len(s.entries[i].paths); room < 0 || values < 0 {
			r.leave(s.entries[i:])
			break
		}
		r.Entries = append(r.Entries, recordedOf(&s.entries[i]))
	}
	out, err := json.Marshal(r)
	if err == nil && len(out) > maxRecord {
		err = errRecordTooLarge
	}
	return append(dst, out...), err
}

// leave counts entries as dropped.
func (r *Record) leave(entries []Entry) {
	for i := range entries {
		e := &entries[i]
		r.Dropped += e.Count
		for p := range r.Policies {
			if one := &r.Policies[p]; one.KRI == e.ShadowPolicy {
				one.Lost = later(one.Lost, e.Last)
			}
		}
	}
}

func recordedOf(e *Entry) recorded {
	out := recorded{Inbound: e.Inbound, Client: e.Client, Method: e.Method, PathPrefix: e.PathPrefix, Policy: e.Policy,
		Allowed: e.Allowed, ShadowPolicy: e.ShadowPolicy, Count: e.Count, First: e.First.UTC(), Last: e.Last.UTC(),
		Elsewhere: e.elsewhere}
	for path, seen := range e.paths {
		out.Paths = append(out.Paths, recordedPath{path, seen.count, seen.last.UTC()})
	}
	slices.SortFunc(out.Paths, func(a, b recordedPath) int { return b.Last.Compare(a.Last) })
	return out
}
