package exchange

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
)

// row is one line of testdata/filter.yaml.
type row struct {
	Name, Rule, Check, Direction, Zone string
	Features                           *[]string
	Disabled                           []string
	Copies                             string
	Here                               []rowResource
	Resource                           rowResource
	Hashed                             bool
	Want                               rowWant
}

type rowResource struct {
	Type            resources.Type
	Mesh            *string
	Namespace, Name string
	Labels          map[string]string
	Spec, Status    json.RawMessage
}

type rowWant struct {
	Rule, Refused   string
	Name, Namespace *string
	Labels          map[string]string
	Without         []string
	Spec, Status    json.RawMessage
}

func readRows(t *testing.T) []row {
	t.Helper()
	raw, err := os.ReadFile("testdata/filter.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	if err := yaml.UnmarshalStrict(raw, &rows); err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if rows[i].Zone == "" {
			rows[i].Zone = "zone-1"
		}
	}
	return rows
}

func (r *rowResource) build(t *testing.T) *resources.Resource {
	t.Helper()
	out := &resources.Resource{Key: resources.Key{Type: r.Type, Mesh: "default", Namespace: r.Namespace, Name: r.Name},
		Labels: maps.Clone(r.Labels)}
	if r.Mesh != nil {
		out.Mesh = *r.Mesh
	}
	if out.Name == "" {
		out.Name = "r"
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	spec := r.Spec
	if spec == nil {
		spec = []byte("{}")
	}
	var err error
	if out.Spec, err = resources.NewSpec(r.Type, spec); err != nil {
		t.Fatal(err)
	}
	out.Status = r.Status
	return out
}

func (r *row) direction() Direction {
	if r.Direction == "up" {
		return ZoneToGlobal
	}
	return GlobalToZone
}

// failure returns how the outcome differs from the row, or "".
func (r *row) failure(t *testing.T, c *Filter, m *Mapping) string {
	t.Helper()
	in := r.Resource.build(t)
	audience := &Audience{Direction: r.direction(), Zone: r.Zone, Features: OwnFeatures(),
		Enabled: func(zone string) bool { return !slices.Contains(r.Disabled, zone) }}
	if r.Features != nil {
		audience.Features = ParseFeatures(*r.Features)
	}
	origin := Origin{Direction: r.direction(), Zone: r.Zone}
	switch r.Check {
	case "stops":
		if got := c.Stops(in, audience); got != r.Want.Rule {
			return fmt.Sprintf("stopped by %q, want %q", got, r.Want.Rule)
		}
		return ""
	case "accepts":
		if r.Hashed {
			in.Name = NameInZone(in, r.Zone)
		}
		for _, rule := range m.accept {
			if err := rule.refuse(in, &origin); err != nil {
				return r.Want.refusal(err)
			}
		}
		return r.Want.refusal(nil)
	case "out":
		out, err := m.Outbound(in, audience)
		if err != nil || r.Want.Refused != "" {
			return r.Want.refusal(err)
		}
		return r.Want.mismatch(out)
	case "in":
		here := &Arrival{Origin: origin, SystemNamespace: resources.DefaultSystemNamespace, CopyNamespace: r.Copies,
			Lookup: r.lookup(t)}
		out := in
		for _, step := range m.inbound[r.direction()] {
			if err := step.apply(out, here); err != nil {
				return err.Error()
			}
		}
		return r.Want.mismatch(out)
	}
	t.Fatalf("%s: no check %q", r.Name, r.Check)
	return ""
}

func (r *row) lookup(t *testing.T) Lookup {
	return func(typ resources.Type, mesh, name string) *resources.Resource {
		for i := range r.Here {
			if h := r.Here[i].build(t); h.Type == typ && h.Mesh == mesh && h.Name == name {
				return h
			}
		}
		return nil
	}
}

func (w *rowWant) refusal(err error) string {
	switch {
	case err == nil && w.Refused == "":
		return ""
	case err == nil:
		return fmt.Sprintf("taken, want a refusal with %q", w.Refused)
	case w.Refused == "" || !strings.Contains(err.Error(), w.Refused):
		return fmt.Sprintf("refused: %v; want %q", err, w.Refused)
	}
	return ""
}

func (w *rowWant) mismatch(r *resources.Resource) string {
	var out []string
	if w.Name != nil && *w.Name != r.Name {
		out = append(out, fmt.Sprintf("name %q, want %q", r.Name, *w.Name))
	}
	if w.Namespace != nil && *w.Namespace != r.Namespace {
		out = append(out, fmt.Sprintf("namespace %q, want %q", r.Namespace, *w.Namespace))
	}
	for k, v := range w.Labels {
		if r.Labels[k] != v {
			out = append(out, fmt.Sprintf("label %s is %q, want %q", k, r.Labels[k], v))
		}
	}
	for _, k := range w.Without {
		if v, ok := r.Labels[k]; ok {
			out = append(out, fmt.Sprintf("label %s is %q, want none", k, v))
		}
	}
	for what, pair := range map[string][2]json.RawMessage{"spec": {w.Spec, r.Spec.JSON()},
		"status": {w.Status, r.Status}} {
		if pair[0] != nil && canonical(pair[0]) != canonical(pair[1]) {
			out = append(out, fmt.Sprintf("%s %s, want %s", what, pair[1], pair[0]))
		}
	}
	return strings.Join(out, "; ")
}

func canonical(raw json.RawMessage) string {
	var v any
	_ = json.Unmarshal(raw, &v)
	b, _ := json.Marshal(v)
	return string(b)
}

func TestWhatCrosses(t *testing.T) {
	t.Parallel()
	for _, r := range readRows(t) {
		t.Run(r.Name, func(t *testing.T) {
			if failure := r.failure(t, NewFilter(), NewMapping()); failure != "" {
				t.Error(failure)
			}
		})
	}
}

// TestEachRuleHasItsRows omits one rule after the other: exactly the rows that name it must fail.
func TestEachRuleHasItsRows(t *testing.T) {
	t.Parallel()
	rows := readRows(t)
	leaveOut := func(direction, check, rule string, c *Filter, m *Mapping) {
		t.Helper()
		var want, got []string
		for i := range rows {
			r := &rows[i]
			if r.Rule == rule && r.Check == check && (direction == "" || r.Direction == direction) {
				want = append(want, r.Name)
			}
			if r.failure(t, c, m) != "" {
				got = append(got, r.Name)
			}
		}
		if len(want) == 0 {
			t.Errorf("%s %s %s: the rule has no row", direction, check, rule)
		}
		if !slices.Equal(want, got) {
			t.Errorf("%s %s without %s:\nfailed %q\nwant   %q", direction, check, rule, got, want)
		}
	}
	for i, direction := range []string{"down", "up"} {
		for j, rule := range NewFilter().rules[i] {
			c := NewFilter()
			c.rules[i] = slices.Delete(c.rules[i], j, j+1)
			leaveOut(direction, "stops", rule.name, c, NewMapping())
		}
		for j, step := range NewMapping().outbound[i] {
			m := NewMapping()
			m.outbound[i] = slices.Delete(m.outbound[i], j, j+1)
			leaveOut(direction, "out", step.name, NewFilter(), m)
		}
		for j, step := range NewMapping().inbound[i] {
			m := NewMapping()
			m.inbound[i] = slices.Delete(m.inbound[i], j, j+1)
			leaveOut(direction, "in", step.name, NewFilter(), m)
		}
	}
	for j, rule := range NewMapping().accept {
		m := NewMapping()
		m.accept = slices.Delete(m.accept, j, j+1)
		leaveOut("", "accepts", rule.name, NewFilter(), m)
	}
}

// TestSameForAll checks SameForAll against every row, for any zone that takes part.
func TestSameForAll(t *testing.T) {
	t.Parallel()
	c, same, other := NewFilter(), 0, 0
	for _, row := range readRows(t) {
		r := row.Resource.build(t)
		if row.direction() != GlobalToZone {
			continue
		}
		if !c.SameForAll(r, GlobalToZone) {
			other++
			continue
		}
		same++
		features := OwnFeatures()
		if row.Features != nil {
			features = ParseFeatures(*row.Features)
		}
		crosses := func(zone string) bool {
			enabled := func(z string) bool { return z == zone || !slices.Contains(row.Disabled, z) }
			return c.Stops(r, &Audience{Direction: GlobalToZone, Zone: zone, Features: features, Enabled: enabled}) == ""
		}
		want := crosses("a-zone-of-no-row")
		for _, zone := range []string{row.Zone, "zone-2", "zone-3", r.Labels[resources.LabelZone], targetZone(r)} {
			if zone != "" && crosses(zone) != want {
				t.Errorf("%s: crosses to %s is %v, to others %v", row.Name, zone, !want, want)
			}
		}
	}
	if same == 0 || other == 0 {
		t.Errorf("%d rows are the same for all and %d are not: the table shows nothing", same, other)
	}
}

// TestBytesAreSharedByThoseWhoGetTheSame checks that peers share the bytes of a resource unless they announce features
// that change them.
func TestBytesAreSharedByThoseWhoGetTheSame(t *testing.T) {
	t.Parallel()
	m, differed := NewMapping(), Features(0)
	for _, row := range readRows(t) {
		if row.Check != "out" {
			continue
		}
		sent := func(f Features) string {
			r, err := m.Outbound(row.Resource.build(t), &Audience{Direction: row.direction(), Zone: row.Zone, Features: f})
			if err != nil {
				return err.Error()
			}
			return fmt.Sprint(r.Key, r.Labels, string(r.Spec.JSON()), string(r.Status))
		}
		for _, f := range featureNames {
			if sent(OwnFeatures()) == sent(OwnFeatures()&^f.feature) {
				continue
			}
			if differed |= f.feature; ChangeBytes&f.feature == 0 {
				t.Errorf("%s: one who announces %s gets the bytes of one who does not", row.Name, f.name)
			}
		}
	}
	if want := ChangeBytes &^ FeatureHiddenSecrets; differed != want { // the encoder hides secrets
		t.Errorf("%v change what is sent, want %v", differed.Names(), want.Names())
	}
}
