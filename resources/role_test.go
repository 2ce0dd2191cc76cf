package resources_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// policyIn returns a policy as home stores it.
func policyIn(t testing.TB, home resources.Home, typ resources.Type, namespace, spec string) *resources.Resource {
	t.Helper()
	body, err := resources.NewSpec(typ, []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	key := resources.Key{Type: typ, Mesh: "default", Namespace: namespace, Name: "p"}
	return home.Labelled(&resources.Resource{Key: key, Spec: body})
}

// TestRoleOf has a row for each rule of seed 004, "Producers and consumers".
func TestRoleOf(t *testing.T) {
	zone := resources.Home{Zone: "zone-1"}
	for name, c := range map[string]struct {
		home            resources.Home
		namespace, spec string
		want            resources.Role
	}{
		"no namespace": {zone, "", `{"to":[{"targetRef":{"kind":"MeshService","name":"b"}}]}`,
			resources.RoleSystem},
		"system namespace": {zone, "kuma-system", `{"to":[{"targetRef":{"kind":"MeshService","name":"b"}}]}`,
			resources.RoleSystem},
		"own system namespace": {resources.Home{Zone: "z", SystemNamespace: "mine"}, "mine",
			`{"rules":[{"default":{}}]}`, resources.RoleSystem},
		"of the global": {resources.Home{}, "team",
			`{"to":[{"targetRef":{"kind":"MeshService","name":"b"}}]}`, resources.RoleSystem},
		"only rules": {zone, "team", `{"rules":[{"default":{}}]}`, resources.RoleWorkloadOwner},
		"only from":  {zone, "team", `{"from":[{"default":{}}]}`, resources.RoleWorkloadOwner},
		"sugar":      {zone, "team", `{"default":{}}`, resources.RoleWorkloadOwner},
		"nothing":    {zone, "team", `{}`, resources.RoleWorkloadOwner},
		"no namespace in to": {zone, "team", `{"to":[{"targetRef":{"kind":"MeshService","name":"b"}}]}`,
			resources.RoleProducer},
		"own namespace in to": {zone, "team",
			`{"to":[{"targetRef":{"kind":"MeshService","name":"b","namespace":"team"}}]}`, resources.RoleProducer},
		"other namespace in to": {zone, "team",
			`{"to":[{"targetRef":{"kind":"MeshService","name":"b","namespace":"other"}}]}`, resources.RoleConsumer},
		"mixed reads as consumer":   {zone, "team", `{"to":[{"targetRef":{"kind":"MeshService","name":"b"}},{"targetRef":{"kind":"MeshService","name":"b","namespace":"other"}}]}`, resources.RoleConsumer},
		"labels with own namespace": {zone, "team", `{"to":[{"targetRef":{"kind":"MeshService","labels":{"k8s.kuma.io/namespace":"team"}}}]}`, resources.RoleProducer},
		"labels of another":         {zone, "team", `{"to":[{"targetRef":{"kind":"MeshService","labels":{"k8s.kuma.io/namespace":"other"}}}]}`, resources.RoleConsumer},
		"labels without namespace": {zone, "team",
			`{"to":[{"targetRef":{"kind":"MeshService","labels":{"app":"b"}}}]}`, resources.RoleConsumer},
		"mesh in to":       {zone, "team", `{"to":[{"targetRef":{"kind":"Mesh"}}]}`, resources.RoleConsumer},
		"empty to is mesh": {zone, "team", `{"to":[{"default":{}}]}`, resources.RoleConsumer},
		"external service": {zone, "team", `{"to":[{"targetRef":{"kind":"MeshExternalService","name":"b"}}]}`,
			resources.RoleConsumer},
		"route in own namespace": {zone, "team", `{"to":[{"targetRef":{"kind":"MeshHTTPRoute","name":"r"}}]}`,
			resources.RoleProducer},
	} {
		t.Run(name, func(t *testing.T) {
			r := policyIn(t, c.home, resources.TypeMeshTimeout, c.namespace, c.spec)
			system := c.home.SystemNamespace
			if system == "" {
				system = resources.DefaultSystemNamespace
			}
			if got := resources.RoleOf(r, system); got != c.want {
				t.Errorf("want %s, got %s", c.want, got)
			}
			if got := r.Labels[resources.LabelPolicyRole]; got != string(c.want) {
				t.Errorf("label: want %s, got %s", c.want, got)
			}
			lying := r.Clone()
			lying.Labels[resources.LabelPolicyRole] = "producer"
			if got := resources.RoleOf(lying, system); got != c.want {
				t.Errorf("the label is believed: got %s", got)
			}
		})
	}
}

// TestRoleIgnoresUsersLabels checks that a user's values for labels that home computes do not change the role.
func TestRoleIgnoresUsersLabels(t *testing.T) {
	r := policyIn(t, resources.Home{Zone: "zone-1"}, resources.TypeMeshTimeout, "team", `{"default":{}}`)
	r.Labels[resources.LabelNamespace] = "kuma-system"
	r.Labels[resources.LabelOrigin] = resources.OriginGlobal
	got := resources.Home{Zone: "zone-1"}.ComputedLabels(r)[resources.LabelPolicyRole]
	if got != string(resources.RoleWorkloadOwner) {
		t.Errorf("got %s", got)
	}
}

func TestComputedLabels(t *testing.T) {
	want := map[string]string{
		"kuma.io/origin": "zone", "kuma.io/zone": "zone-1", "kuma.io/mesh": "default", "kuma.io/display-name": "p",
		"kuma.io/env": "universal", "k8s.kuma.io/namespace": "team", "kuma.io/policy-role": "workload-owner",
	}
	if got := policyIn(t, resources.Home{Zone: "zone-1"}, resources.TypeMeshTimeout, "team",
		`{"default":{}}`).Labels; !maps.Equal(got, want) {
		t.Errorf("in a zone: got %v", got)
	}
	want = map[string]string{
		"kuma.io/origin": "global", "kuma.io/mesh": "default", "kuma.io/display-name": "p", "kuma.io/env": "universal",
		"kuma.io/policy-role": "system",
	}
	if got := policyIn(t, resources.Home{}, resources.TypeMeshTimeout, "", `{"default":{}}`).Labels; !maps.Equal(got,
		want) {
		t.Errorf("on the global: got %v", got)
	}
}

// TestAloneZone checks that a resource that only the global writes has the global as its origin in a zone that runs
// alone, and that users may change it there.
func TestAloneZone(t *testing.T) {
	spec, err := resources.NewSpec(resources.TypeMesh, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	mesh := &resources.Resource{Key: resources.Key{Type: resources.TypeMesh, Name: "default"}, Spec: spec}
	alone := resources.Home{Zone: "zone-1", Alone: true}
	stored := alone.Labelled(mesh)
	if got := resources.KRIOf(stored).String(); got != "kri_m____default_" {
		t.Errorf("got %s", got)
	}
	if !alone.Owns(stored) || (resources.Home{Zone: "zone-1"}).Owns(stored) || !(resources.Home{}).Owns(stored) {
		t.Error("the mesh is owned by the wrong server")
	}
	policy := policyIn(t, alone, resources.TypeMeshTimeout, "", `{"default":{}}`)
	if !alone.Owns(policy) || policy.Zone() != "zone-1" {
		t.Errorf("a policy of the zone: got %v", policy.Labels)
	}
}

// TestExplicit has a row for each shorthand of seed 004.
func TestExplicit(t *testing.T) {
	zone := resources.Home{Zone: "zone-1"}
	for name, c := range map[string]struct {
		home                  resources.Home
		namespace, spec, want string
	}{
		"default is a rule": {zone, "", `{"default":{"a":1}}`, `{"rules":[{"default":{"a":1}}],"targetRef":{"kind":"Mesh"}}`},
		"workload owner": {
			zone, "team", `{"rules":[{"default":{}}]}`,
			`{"rules":[{"default":{}}],"targetRef":{"kind":"Dataplane","labels":{"k8s.kuma.io/namespace":"team","kuma.io/zone":"zone-1"}}}`,
		},
		"consumer": {
			zone, "team", `{"targetRef":{"kind":"Mesh"},"to":[{"default":{}}]}`,
			`{"targetRef":{"kind":"Dataplane","labels":{"k8s.kuma.io/namespace":"team","kuma.io/zone":"zone-1"}},"to":[{"default":{},"targetRef":{"kind":"Mesh"}}]}`,
		},
		"producer": {
			zone, "team", `{"to":[{"targetRef":{"kind":"MeshService","name":"b"},"default":{}}]}`,
			`{"targetRef":{"kind":"Mesh"},"to":[{"default":{},"targetRef":{"kind":"MeshService","name":"b","namespace":"team"}}]}`,
		},
		"explicit target": {
			zone, "team", `{"targetRef":{"kind":"Dataplane","name":"d"},"default":{}}`,
			`{"rules":[{"default":{}}],"targetRef":{"kind":"Dataplane","name":"d"}}`,
		},
		"from": {resources.Home{}, "", `{"from":[{"default":{}}]}`,
			`{"from":[{"default":{},"targetRef":{"kind":"Mesh"}}],"targetRef":{"kind":"Mesh"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := policyIn(t, c.home, resources.TypeMeshTimeout, c.namespace, c.spec)
			before := typed(t, r)
			got, err := resources.Explicit(r, resources.DefaultSystemNamespace)
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Spec.JSON()) != c.want {
				t.Errorf("want %s\ngot  %s", c.want, got.Spec.JSON())
			}
			if after := typed(t, r); after != before {
				t.Errorf("the stored form was changed to %s", after)
			}
		})
	}
}

// typed returns the typed form of a policy's spec, which all readers share.
func typed(t *testing.T, r *resources.Resource) string {
	t.Helper()
	p, err := resources.SpecAs[resources.Policy](r)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestPeers has a row for each difference between the rules for users and for peers.
func TestPeers(t *testing.T) {
	for name, c := range map[string]struct {
		typ  resources.Type
		spec string
		user bool
		peer bool
	}{
		"several rules": {resources.TypeMeshTrafficPermission,
			`{"rules":[{"default":{}},{"default":{"allow":[{"spiffeID":{"type":"Exact","value":"spiffe://a/b"}}]}}]}`,
			false, true},
		"null lists": {resources.TypeMeshTrafficPermission,
			`{"from":null,"rules":[{"default":{"deny":null}}]}`, true, true},
		"unknown field in a permission": {resources.TypeMeshTrafficPermission,
			`{"rules":[{"default":{"allow":[{"spiffeId":{"type":"Exact","value":"spiffe://a/b"},"header":{}}]}}]}`,
			false, false},
		"matches in a permission": {resources.TypeMeshTrafficPermission,
			`{"rules":[{"matches":[{"method":"GET"}],"default":{}}]}`, false, false},
		"empty entry": {resources.TypeMeshTrafficPermission,
			`{"rules":[{"default":{"allow":[{}]}}]}`, false, false},
		"unknown action": {resources.TypeMeshTrafficPermission,
			`{"from":[{"default":{"action":"Bogus"}}]}`, false, false},
		"unknown kind": {resources.TypeMeshTrafficPermission,
			`{"targetRef":{"kind":"Future"},"rules":[{"default":{}}]}`, false, false},
		"rule without default": {resources.TypeMeshTrafficPermission, `{"rules":[{}]}`, false, false},
		"unknown field in another policy": {resources.TypeMeshRetry,
			`{"to":[{"targetRef":{"kind":"Mesh"},"default":{},"future":1}]}`, true, true},
		"top-level route": {resources.TypeMeshRetry,
			`{"targetRef":{"kind":"MeshHTTPRoute","name":"r"},"to":[{"targetRef":{"kind":"Mesh"},"default":{}}]}`, false, true},
		"policy that says nothing": {resources.TypeMeshRetry, `{}`, false, true},
		"wrong kind of value":      {resources.TypeMeshRetry, `{"to":5}`, false, false},
		"repeated inbound": {resources.TypeDataplane,
			`{"networking":{"address":"10.0.0.1","inbound":[{"port":80},{"port":80}]}}`, false, true},
		"unknown protocol": {resources.TypeDataplane,
			`{"networking":{"address":"10.0.0.1","inbound":[{"port":80,"protocol":"future"}]}}`, false, true},
		"no address": {resources.TypeDataplane, `{"networking":{}}`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			home := resources.Home{Zone: "zone-1"}
			r := policyIn(t, home, c.typ, "", c.spec)
			if err := resources.Validate(r, home); (err == nil) != c.user {
				t.Errorf("a user's: %v", err)
			}
			if err := resources.ValidateSpec(r); (err == nil) != c.peer {
				t.Errorf("a peer's: %v", err)
			}
		})
	}
}

// TestRoleOfCopy checks that a copy has the role that the receiver computed before it rewrote the references.
func TestRoleOfCopy(t *testing.T) {
	zone := resources.Home{Zone: "zone-1"}
	r := policyIn(t, zone, resources.TypeMeshTimeout, "team",
		`{"to":[{"targetRef":{"kind":"MeshService","name":"b-0123456789abcdef","namespace":"kuma-system"}}]}`)
	r.Name, r.Namespace = "p-0123456789abcdef", "kuma-system"
	r.Labels[resources.LabelPolicyRole] = string(resources.RoleProducer)
	if got := resources.RoleOf(r, "kuma-system"); got != resources.RoleProducer {
		t.Errorf("got %s", got)
	}
	explicit, err := resources.Explicit(r, "kuma-system")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"targetRef":{"kind":"Mesh"},"to":[{"targetRef":{"kind":"MeshService","name":"b-0123456789abcdef","namespace":"kuma-system"}}]}`
	if got := string(explicit.Spec.JSON()); got != want {
		t.Errorf("explicit: got %s", got)
	}
	r.Labels[resources.LabelPolicyRole] = "no role"
	if got := resources.RoleOf(r, "kuma-system"); got != resources.RoleConsumer {
		t.Errorf("a label that names no role: got %s", got)
	}
}
