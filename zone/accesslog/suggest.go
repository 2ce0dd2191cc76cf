package accesslog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// suggestion is a response with the data needed to complete it.
type suggestion struct {
	api.Suggestion
	reader *api.Reader
	hidden map[string]bool
}

// hiddenPolicy replaces the name of a policy that the caller may not read.
const hiddenPolicy = "a hidden policy"

// named returns the name of a policy for a warning. Decisions that no policy made have names that are not KRIs.
func (s *suggestion) named(policy string) string {
	if _, err := resources.ParseKRI(policy); err != nil || shows(s.reader, policy) {
		return policy
	}
	s.hidden[policy] = true
	s.LeftOut = len(s.hidden)
	return hiddenPolicy
}

// suggestQuery selects the subject of a suggestion.
type suggestQuery struct {
	dataplane *resources.Resource
	since     time.Time
	// prefixes means that paths are allowed by their first segments, not individually.
	prefixes bool
	// byLabels means that the permissions select the Dataplane by its zone and name, because Dataplanes of other zones may
	// have the same name.
	byLabels bool
	reader   *api.Reader
}

// suggest builds the permissions of one Dataplane from the traffic observed since a time.
func suggest(j *Journal, q suggestQuery) (*api.Suggestion, error) {
	dp, kri := q.dataplane, resources.KRIOf(q.dataplane)
	s := j.read(func(e *Entry) bool {
		of, err := resources.ParseKRI(e.Inbound)
		return err == nil && of.WithSection("") == kri && !e.Last.Before(q.since)
	})
	out := &suggestion{reader: q.reader, hidden: map[string]bool{}, Suggestion: api.Suggestion{
		Resources: []json.RawMessage{}, Since: later(q.since, s.since).UTC(), Warnings: []string{}}}
	if s.since.After(q.since) {
		out.warn("nothing before %s was recorded", s.since.UTC().Format(time.RFC3339))
	}
	if s.dropped > 0 {
		out.warn("%d requests were not kept, for lack of room; some may have been to this Dataplane", s.dropped)
	}
	replay := &replay{suggestion: out, inbounds: map[string]*grouping{}, prefixes: q.prefixes}
	for i := range s.entries {
		replay.calls = append(replay.calls, callsOf(&s.entries[i], q.since)...)
	}
	if len(replay.calls) == 0 {
		out.Unknown = fmt.Sprintf("no call was seen since %s, allowed or denied", out.Since.Format(time.RFC3339))
		return &out.Suggestion, nil
	}
	replay.propose()
	replay.judge()
	sections := slices.Sorted(maps.Keys(replay.inbounds))
	if len(sections) == 0 {
		out.warn("no allowed request was seen: the permission is empty")
		sections = []string{""}
	}
	for _, section := range sections {
		name := dp.DisplayName() + "-observed"
		if len(sections) > 1 {
			name = dp.DisplayName() + "-" + section + "-observed"
		}
		permission, err := permissionFor(&q, name, section, replay.inbounds[section])
		if err != nil {
			return nil, err
		}
		out.Resources = append(out.Resources, permission)
	}
	return &out.Suggestion, nil
}

// permissionFor returns a permission for the traffic observed on one inbound; seen may be nil.
func permissionFor(q *suggestQuery, name, section string, seen *grouping) (json.RawMessage, error) {
	dp := q.dataplane
	target := &resources.TargetRef{Kind: resources.KindDataplane, Name: dp.DisplayName(), Namespace: dp.HomeNamespace(),
		SectionName: section}
	namespace := dp.Namespace
	if q.byLabels {
		target.Name, target.Namespace, namespace = "", "", ""
		target.Labels = labelsOf(dp)
		name = dp.Zone() + "-" + name
	}
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
		Type: resources.TypeMeshTrafficPermission, Mesh: dp.Mesh, Namespace: namespace, Name: name,
	}}), nil
}

// labelsOf returns the labels by which a global selects one zone's Dataplane.
func labelsOf(dp *resources.Resource) map[string]string {
	labels := map[string]string{resources.LabelZone: dp.Zone(), resources.LabelDisplayName: dp.DisplayName()}
	if in := dp.HomeNamespace(); in != "" {
		labels[resources.LabelNamespace] = in
	}
	return labels
}

func (s *suggestion) warn(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}

// matchOf returns the entry of a permission for a client, a method and a path; a connection's method and path are
// empty.
func matchOf(client, method, path string, prefix bool) resources.PermissionMatch {
	m := resources.PermissionMatch{SpiffeID: &resources.SpiffeIDMatch{Type: resources.MatchExact, Value: client}}
	if method == "" {
		return m
	}
	m.Method = resources.Methods{method}
	m.Path = &resources.PathMatch{Type: resources.MatchExact, Value: path}
	if prefix && path != "/" { // as a prefix it would match every path
		m.Path.Type = resources.MatchPrefix
	}
	return m
}

// grouping collects the methods of one inbound by client and path.
type grouping struct {
	prefixes bool
	methods  map[[2]string]map[string]bool
}

func (g *grouping) add(client, method, path string) {
	of := [2]string{client, path}
	if g.methods[of] == nil {
		g.methods[of] = map[string]bool{}
	}
	g.methods[of][method] = true
}

// matches returns the sorted entries, so that the same traffic gives the same permission.
func (g *grouping) matches() []resources.PermissionMatch {
	keys := slices.SortedFunc(maps.Keys(g.methods), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	var out []resources.PermissionMatch
	for _, of := range keys {
		methods := slices.Sorted(maps.Keys(g.methods[of]))
		m := matchOf(of[0], methods[0], of[1], g.prefixes)
		if m.Method != nil {
			m.Method = methods
		}
		out = append(out, m)
	}
	return out
}
