package accesslog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// Suggestion is permissions that allow what was allowed and seen, and not more than it takes to say it by client, method and first
// segment of the path.
type Suggestion struct {
	// Resources are MeshTrafficPermissions in Universal form: one for each inbound that was called, since what a client may on one is
	// not to be allowed on another; or one that allows nothing.
	Resources []json.RawMessage `json:"resources"`
	// Observed is how many requests, and connections on TCP, they were made from.
	Observed uint64    `json:"observed"`
	Since    time.Time `json:"since"`
	Warnings []string  `json:"warnings"`
	// LeftOut counts the policies that are not named in the warnings, because who asks may not read them.
	LeftOut int `json:"leftOut,omitempty"`

	reader *api.Reader
	hidden map[string]bool
}

// hiddenPolicy stands for the name of a policy that may not be read.
const hiddenPolicy = "a policy that is not shown"

// named is the name of a policy in a warning. Decisions that no policy made have names that are no KRIs.
func (s *Suggestion) named(policy string) string {
	if _, err := resources.ParseKRI(policy); err != nil || shows(s.reader, policy) {
		return policy
	}
	s.hidden[policy] = true
	s.LeftOut = len(s.hidden)
	return hiddenPolicy
}

// suggest makes the permissions of one Dataplane from what was seen since.
func suggest(j *Journal, dp *resources.Resource, since time.Time, reader *api.Reader) (*Suggestion, error) {
	kri := resources.KRIOf(dp)
	s := j.read(func(e *Entry) bool {
		of, err := resources.ParseKRI(e.Inbound)
		return err == nil && of.WithSection("") == kri && !e.Last.Before(since)
	})
	out := &Suggestion{Resources: []json.RawMessage{}, Since: later(since, s.since).UTC(), Warnings: []string{}, reader: reader, hidden: map[string]bool{}}
	if s.since.After(since) {
		out.warn("what came before %s was not seen", s.since.UTC().Format(time.RFC3339))
	}
	if s.dropped > 0 {
		out.warn("%d requests were not kept for want of room; some may have been to this Dataplane", s.dropped)
	}
	inbounds := map[string]*grouping{}
	for i := range s.entries {
		out.take(inbounds, &s.entries[i])
	}
	sections := slices.Sorted(maps.Keys(inbounds))
	if len(sections) == 0 {
		out.warn("no allowed request was seen: the permission is empty")
		sections = []string{""}
	}
	for _, section := range sections {
		name := dp.DisplayName() + "-observed"
		if len(sections) > 1 {
			name = dp.DisplayName() + "-" + section + "-observed"
		}
		permission, err := permissionFor(dp, name, section, inbounds[section])
		if err != nil {
			return nil, err
		}
		out.Resources = append(out.Resources, permission)
	}
	return out, nil
}

// permissionFor allows what was seen on one inbound; seen may be nil.
func permissionFor(dp *resources.Resource, name, section string, seen *grouping) (json.RawMessage, error) {
	target := &resources.TargetRef{Kind: resources.KindDataplane, Name: dp.DisplayName(), Namespace: dp.HomeNamespace(), SectionName: section}
	conf := map[string]any{}
	if seen != nil {
		conf["allow"] = seen.matches()
	}
	spec, err := json.Marshal(map[string]any{"targetRef": target, "rules": []any{map[string]any{"default": conf}}})
	if err != nil {
		return nil, err
	}
	parsed, err := resources.NewSpec(resources.TypeMeshTrafficPermission, spec)
	if err != nil {
		return nil, err
	}
	return resources.AppendUniversal(nil, &resources.Resource{Spec: parsed, Key: resources.Key{
		Type: resources.TypeMeshTrafficPermission, Mesh: dp.Mesh, Namespace: dp.Namespace, Name: name,
	}}), nil
}

func (s *Suggestion) warn(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}

// take adds an entry, or says why not.
func (s *Suggestion) take(inbounds map[string]*grouping, e *Entry) {
	who := fmt.Sprintf("%d of %s (%s %s)", e.Count, cmp.Or(e.Client, "clients without one SPIFFE ID"), e.Method, e.PathPrefix)
	match := matchOf(e)
	switch {
	case !e.Allowed:
		s.warn("not allowed by it, since %s denied them: %s", s.named(e.Policy), who)
		return
	case e.Client == "" || e.Method == Other || e.PathPrefix == Other || rbac.Fault(&match) != "":
		s.warn("not allowed by it, since a permission cannot say so: %s", who)
		return
	}
	if e.ShadowPolicy != "" {
		s.warn("allowed by it, though %s would deny them: %s", s.named(e.ShadowPolicy), who)
	}
	kri, _ := resources.ParseKRI(e.Inbound)
	if inbounds[kri.Section] == nil {
		inbounds[kri.Section] = &grouping{methods: map[[2]string]map[string]bool{}}
	}
	inbounds[kri.Section].add(e)
	s.Observed += e.Count
}

// matchOf is the entry of a permission for one observation.
func matchOf(e *Entry) resources.PermissionMatch {
	m := resources.PermissionMatch{SpiffeID: &resources.SpiffeIDMatch{Type: resources.MatchExact, Value: e.Client}}
	if e.Method == "" {
		return m
	}
	m.Method = resources.Methods{e.Method}
	m.Path = &resources.PathMatch{Type: resources.MatchPrefix, Value: e.PathPrefix}
	if e.PathPrefix == "/" { // as a prefix it would be every path
		m.Path.Type = resources.MatchExact
	}
	return m
}

// grouping collects the methods of one inbound by client and path.
type grouping struct {
	methods map[[2]string]map[string]bool // by client and path; a connection's method and path are empty
}

func (g *grouping) add(e *Entry) {
	of := [2]string{e.Client, e.PathPrefix}
	if g.methods[of] == nil {
		g.methods[of] = map[string]bool{}
	}
	g.methods[of][e.Method] = true
}

// matches are sorted, so that the same traffic gives the same permission.
func (g *grouping) matches() []resources.PermissionMatch {
	keys := slices.SortedFunc(maps.Keys(g.methods), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	var out []resources.PermissionMatch
	for _, of := range keys {
		methods := slices.Sorted(maps.Keys(g.methods[of]))
		m := matchOf(&Entry{Observation: Observation{Client: of[0], PathPrefix: of[1], Method: methods[0]}})
		if m.Method != nil {
			m.Method = methods
		}
		out = append(out, m)
	}
	return out
}
