package matching_test

import (
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// TestWhy has a pair of orders for each step of the order: the second wins.
func TestWhy(t *testing.T) {
	policy := func(d document) *matching.Policy {
		if d.Name == "" {
			d.Name = "p"
		}
		return matching.NewPolicy(d.resource(t, resources.TypeMeshRetry), resources.DefaultSystemNamespace)
	}
	target := func(kind string, more ...string) document {
		ref := map[string]any{"kind": kind}
		for i := 0; i < len(more); i += 2 {
			ref[more[i]] = more[i+1]
		}
		return document{Spec: map[string]any{"targetRef": ref}}
	}
	to := func(role string) document { return document{Zone: "zone-1", Namespace: "ns", Role: role, Copy: true} }
	mesh, service := &resources.TargetRef{}, &resources.TargetRef{Kind: resources.KindMeshService}
	for want, c := range map[string]struct{ loser, winner matching.Order }{
		"targetRef MeshSubset beats Mesh": {
			matching.OrderOf(policy(target("Mesh")), nil), matching.OrderOf(policy(target("MeshSubset")), nil)},
		"targetRef Dataplane with sectionName beats Dataplane by name": {
			matching.OrderOf(policy(target("Dataplane", "name", "a")), nil),
			matching.OrderOf(policy(target("Dataplane", "name", "a", "sectionName", "b")), nil)},
		"zone origin beats global origin": {
			matching.OrderOf(policy(document{}), nil), matching.OrderOf(policy(document{Zone: "zone-1"}), nil)},
		"role consumer beats producer": {
			matching.OrderOf(policy(to("producer")), nil), matching.OrderOf(policy(to("consumer")), nil)},
		"an item for MeshService beats one for Mesh": {
			matching.OrderOf(policy(document{}), mesh), matching.OrderOf(policy(document{}), service)},
		"an item for one section beats one for a whole resource": {
			matching.OrderOf(policy(document{}), service),
			matching.OrderOf(policy(document{}), &resources.TargetRef{Kind: resources.KindMeshService, SectionName: "http"})},
		`name "aaa" beats "bbb": it comes first in the alphabet`: {
			matching.OrderOf(policy(document{Name: "bbb"}), nil), matching.OrderOf(policy(document{Name: "aaa"}), nil)},
		"KRI kri_mr_default_zone-2__p_ beats kri_mr_default_zone-1__p_: it comes last in the alphabet": {
			matching.OrderOf(policy(document{Zone: "zone-1"}), nil), matching.OrderOf(policy(document{Zone: "zone-2"}), nil)},
		"a later item of a policy beats an earlier one": {
			matching.OrderOf(policy(document{}), mesh), matching.OrderOf(policy(document{}), mesh)},
	} {
		if matching.Compare(c.loser, c.winner) > 0 {
			t.Errorf("%s: the order says otherwise", want)
		}
		for _, got := range []string{matching.Why(c.loser, c.winner), matching.Why(c.winner, c.loser)} {
			if got != want {
				t.Errorf("want %s, got %s", want, got)
			}
		}
	}
}
