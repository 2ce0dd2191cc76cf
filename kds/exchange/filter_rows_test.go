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
		here := &Arrival{Origin: origin, SystemNamespace: resources.DefaultSystemNamespace, OwnNamespace: r.Copies,
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
