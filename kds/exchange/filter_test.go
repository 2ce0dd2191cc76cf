package exchange

import (
	"fmt"
	"slices"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

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
