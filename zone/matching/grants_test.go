package matching

import (
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// ownedBy returns a resource of a zone and namespace, both of which may be empty.
func ownedBy(t *testing.T, typ resources.Type, zone, namespace, name, spec string) *resources.Resource {
	t.Helper()
	s, err := resources.NewSpec(typ, []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	r := &resources.Resource{
		Key: resources.Key{Type: typ, Mesh: "default", Name: name + "-" + zone + "-" + namespace},
		Labels: map[string]string{resources.LabelDisplayName: name, resources.LabelOrigin: resources.OriginGlobal,
			"app": name}, Spec: s,
	}
	if zone != "" {
		r.Labels[resources.LabelZone] = zone
	}
	if namespace != "" {
		r.Labels[resources.LabelNamespace] = namespace
	}
	return r
}

// TestWhereRoutesMaySend checks a route of zone-2's namespace cats against the existing grants and the service that it
// names.
func TestWhereRoutesMaySend(t *testing.T) {
	const (
		service = `{"ports":[{"port":80}]}`
		byCats  = `{"from":[{"kind":"MeshHTTPRoute","zone":"zone-2","namespace":"cats"}],"to":[{"kind":"MeshService"}]}`
	)
	of := func(zone, namespace, spec string) *resources.Resource {
		return ownedBy(t, resources.TypeMeshReferenceGrant, zone, namespace, "grant", spec)
	}
	producer := Referrer{Type: resources.TypeMeshHTTPRoute, Mesh: "default", Zone: "zone-2", Namespace: "cats",
		Role: resources.RoleProducer}
	as := func(role resources.Role) Referrer { r := producer; r.Role = role; return r }
	victim := map[string]string{resources.LabelZone: "zone-1", "app": "victim"}
	for name, c := range map[string]struct {
		from    Referrer
		grant   *resources.Resource
		labels  map[string]string
		allowed bool
	}{
		"its own service": {from: producer,
			labels: map[string]string{resources.LabelZone: "zone-2", resources.LabelNamespace: "cats"}, allowed: true},
		"its own namespace of another zone": {from: producer,
			labels: map[string]string{resources.LabelZone: "zone-1", resources.LabelNamespace: "cats"}},
		"another namespace of its zone": {from: producer,
			labels: map[string]string{resources.LabelZone: "zone-2", resources.LabelNamespace: "dogs"}},
		"nothing granted": {from: producer, labels: victim},
		"granted by the owner": {from: producer, grant: of("zone-1", "dogs", byCats),
			labels: victim, allowed: true},
		"granted by another namespace": {from: producer, grant: of("zone-1", "birds", byCats), labels: victim},
		"granted by itself":            {from: producer, grant: of("zone-2", "cats", byCats), labels: victim},
		"granted by itself in the owner's name": {from: producer,
			grant: of("zone-2", "cats", strings.Replace(byCats, `"MeshService"`,
				`"MeshService","zone":"zone-1","namespace":"dogs"`, 1)), labels: victim},
		"granted by the operator of its zone": {from: producer,
			grant: of("zone-2", "", strings.Replace(byCats, `"MeshService"`,
				`"MeshService","zone":"zone-1","namespace":"dogs"`, 1)), labels: victim},
		"granted by the operator of the zone": {from: producer,
			grant: of("zone-1", "kuma-system", strings.Replace(byCats, `"MeshService"`,
				`"MeshService","namespace":"dogs"`, 1)), labels: victim, allowed: true},
		"granted by the operator for himself only": {from: producer, grant: of("zone-1", "", byCats), labels: victim},
		"granted by the operator of the mesh": {from: producer,
			grant: of("", "", strings.Replace(byCats, `"MeshService"`,
				`"MeshService","zone":"zone-1","namespace":"dogs"`, 1)), labels: victim, allowed: true},
		"granted to another zone": {from: producer,
			grant: of("zone-1", "dogs", strings.Replace(byCats, "zone-2", "zone-3", 1)), labels: victim},
		"granted to another namespace": {from: producer,
			grant: of("zone-1", "dogs", strings.Replace(byCats, "cats", "cows", 1)), labels: victim},
		"granted to the grant's own zone": {from: producer,
			grant: of("zone-1", "dogs", strings.Replace(byCats, `"zone":"zone-2",`, "", 1)), labels: victim},
		"granted to another kind of route": {from: producer,
			grant: of("zone-1", "dogs", strings.Replace(byCats, "MeshHTTPRoute", "MeshTCPRoute", 1)), labels: victim},
		"granted by name": {from: producer,
			grant:  of("zone-1", "dogs", strings.Replace(byCats, `"MeshService"`, `"MeshService","name":"victim"`, 1)),
			labels: victim, allowed: true},
		"granted another name": {from: producer,
			grant:  of("zone-1", "dogs", strings.Replace(byCats, `"MeshService"`, `"MeshService","name":"other"`, 1)),
			labels: victim},
		"granted by labels": {from: producer,
			grant: of("zone-1", "dogs", strings.Replace(byCats, `"MeshService"`,
				`"MeshService","labels":{"app":"victim"}`, 1)), labels: victim, allowed: true},
		"granted other labels": {from: producer,
			grant: of("zone-1", "dogs",
				strings.Replace(byCats, `"MeshService"`, `"MeshService","labels":{"app":"other"}`, 1)), labels: victim},
		"granted an external service only": {from: producer,
			grant: of("zone-1", "dogs", strings.Replace(byCats, "MeshService", "MeshExternalService", 1)), labels: victim},
		"a consumer for its own clients": {from: as(resources.RoleConsumer), labels: victim, allowed: true},
		"the operator of a zone":         {from: as(resources.RoleSystem), labels: victim, allowed: true},
		"a role that has no routes":      {from: as(resources.RoleWorkloadOwner), labels: victim},
		"a role that is not known":       {from: as("king"), labels: victim},
		"a producer without a home": {from: Referrer{Type: resources.TypeMeshHTTPRoute, Mesh: "default",
			Role: resources.RoleProducer}, labels: victim},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*Destination
			for _, r := range []*resources.Resource{
				ownedBy(t, resources.TypeMeshService, "zone-1", "dogs", "victim", service),
				ownedBy(t, resources.TypeMeshService, "zone-1", "cats", "cat", service),
				ownedBy(t, resources.TypeMeshService, "zone-2", "cats", "cat", service),
				ownedBy(t, resources.TypeMeshService, "zone-2", "dogs", "dog", service),
			} {
				d, err := NewDestination(r)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, d)
			}
			config := DestinationsConfig{Zone: "zone-1"}
			if c.grant != nil {
				config.Grants = append(config.Grants, c.grant)
			}
			x := NewDestinations(config, all)
			ref := &resources.BackendRef{TargetRef: resources.TargetRef{Kind: resources.KindMeshService, Labels: c.labels}}
			_, problem := x.ResolveBackend(c.from, ref)
			if c.allowed && problem != "" || !c.allowed && !strings.HasPrefix(problem, refNotPermitted) {
				t.Errorf("allowed %t, the problem is %q", c.allowed, problem)
			}
		})
	}
}

// TestWhatAGrantOpens checks, for each kind of service and each home that it may have, whose grants permit the routes
// of zone-2's namespace cats to send there. No namespace can grant access to an operator's service, whatever the labels
// are.
func TestWhatAGrantOpens(t *testing.T) {
	type home struct{ zone, namespace string }
	from := Referrer{Type: resources.TypeMeshHTTPRoute, Mesh: "default", Zone: "zone-2", Namespace: "cats",
		Role: resources.RoleProducer}
	specs := map[string]string{
		resources.KindMeshService:          `{"ports":[{"port":80}]}`,
		resources.KindMeshExternalService:  `{"match":{"port":80},"endpoints":[{"address":"192.0.2.1","port":80}]}`,
		resources.KindMeshMultiZoneService: `{"selector":{"meshService":{"matchLabels":{"app":"none"}}},"ports":[{"port":80}]}`,
	}
	mesh, zone1, zone2, dogs, cats := home{}, home{zone: "zone-1"}, home{zone: "zone-2"}, home{"zone-1", "dogs"},
		home{"zone-2", "cats"}
	opens := map[string]map[home][]home{ // the homes whose grants permit access, by service home
		resources.KindMeshService:          {zone1: {zone1}, dogs: {dogs}, zone2: {zone2}, cats: {cats}},
		resources.KindMeshExternalService:  {mesh: {mesh}, zone1: {zone1}, dogs: {zone1}, zone2: {zone2}, cats: {zone2}},
		resources.KindMeshMultiZoneService: {mesh: {mesh}},
	}
	for kind, places := range opens {
		for place, openers := range places {
			own := kind == resources.KindMeshService && place == cats // needs no grant
			for _, granter := range []home{mesh, zone1, zone2, dogs, cats} {
				d, err := NewDestination(ownedBy(t, resources.Type(kind), place.zone, place.namespace, "it", specs[kind]))
				if err != nil {
					t.Fatal(err)
				}
				grant := ownedBy(t, resources.TypeMeshReferenceGrant, granter.zone, granter.namespace, "g",
					`{"from":[{"kind":"MeshHTTPRoute","zone":"zone-2","namespace":"cats"}],"to":[{"kind":"`+kind+`"}]}`)
				x := NewDestinations(DestinationsConfig{Zone: "zone-2", Grants: []*resources.Resource{grant}}, []*Destination{d})
				got := x.notPermitted(from, d) == ""
				if want := own || slices.Contains(openers, granter); got != want {
					t.Errorf("%s of %+v, granted by %+v: open is %t", kind, place, granter, got)
				}
			}
		}
	}
}

// TestWhereRoutesMaySendAcrossZones: a MeshMultiZoneService is permitted if all of its members are, or by a grant of
// its owner.
func TestWhereRoutesMaySendAcrossZones(t *testing.T) {
	from := Referrer{Type: resources.TypeMeshTCPRoute, Mesh: "default", Zone: "zone-2", Namespace: "cats",
		Role: resources.RoleProducer}
	own := ownedBy(t, resources.TypeMeshService, "zone-2", "cats", "cat", `{"ports":[{"port":80}]}`)
	other := ownedBy(t, resources.TypeMeshService, "zone-1", "dogs", "cat", `{"ports":[{"port":80}]}`)
	multi := func(zones string) *resources.Resource {
		return ownedBy(t, resources.TypeMeshMultiZoneService, "", "", "all",
			`{"selector":{"meshService":{"matchLabels":{"app":"cat"}`+zones+`}},"ports":[{"port":80}]}`)
	}
	grant := func(zone, namespace, kind string) *resources.Resource {
		return ownedBy(t, resources.TypeMeshReferenceGrant, zone, namespace, "g",
			`{"from":[{"kind":"MeshTCPRoute","zone":"zone-2","namespace":"cats"}],"to":[{"kind":"`+kind+`"}]}`)
	}
	for name, c := range map[string]struct {
		multi    *resources.Resource
		services []*resources.Resource
		grant    *resources.Resource
		allowed  bool
	}{
		"its own only":   {multi: multi(""), services: []*resources.Resource{own}, allowed: true},
		"another joined": {multi: multi(""), services: []*resources.Resource{own, other}},
		"another could not join": {multi: multi(`,"zones":["zone-2"]`),
			services: []*resources.Resource{own, other}, allowed: true},
		"another granted it": {multi: multi(""), services: []*resources.Resource{own, other},
			grant: grant("zone-1", "dogs", "MeshService"), allowed: true},
		"the operator granted it": {multi: multi(""), services: []*resources.Resource{own, other},
			grant: grant("", "", "MeshMultiZoneService"), allowed: true},
		"a zone granted the mesh's": {multi: multi(""), services: []*resources.Resource{own, other},
			grant: grant("zone-2", "", "MeshMultiZoneService")},
		"nobody is there to permit it": {multi: multi("")},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*Destination
			for _, r := range append(c.services, c.multi) {
				d, err := NewDestination(r)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, d)
			}
			config := DestinationsConfig{Zone: "zone-1"}
			if c.grant != nil {
				config.Grants = append(config.Grants, c.grant)
			}
			ref := &resources.BackendRef{TargetRef: resources.TargetRef{Kind: resources.KindMeshMultiZoneService,
				Name: "all"}, Port: 80}
			_, problem := NewDestinations(config, all).ResolveBackend(from, ref)
			if c.allowed && problem != "" || !c.allowed && !strings.HasPrefix(problem, refNotPermitted) {
				t.Errorf("allowed %t, the problem is %q", c.allowed, problem)
			}
		})
	}
}
