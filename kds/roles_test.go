package kds

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestRoleChangeCrossesAtOnce checks that a policy that becomes a producer crosses, and one that stops being one is
// withdrawn, while the global has it all the time (seed 004, "Namespace-scoped policies and multizone").
func TestRoleChangeCrossesAtOnce(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	s1, s2 := store.NewMemory(), store.NewMemory()
	startZone(t, "zone-1", g.address, s1)
	startZone(t, "zone-2", g.address, s2)
	key := resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Namespace: "ns", Name: "p"}
	own := `{"targetRef":{"kind":"Mesh"},"to":[{"targetRef":{"kind":"MeshService","name":"b"},"default":{"idleTimeout":"%ds"}}]}`
	for i, step := range []struct {
		what, spec string
		role       resources.Role
		crosses    bool
	}{
		{"a consumer", `{"to":[{"targetRef":{"kind":"MeshService","name":"b","namespace":"other"},"default":{"idleTimeout":"%ds"}}]}`, resources.RoleConsumer, false},
		{"a producer", own, resources.RoleProducer, true},
		{"a workload owner", `{"rules":[{"default":{"idleTimeout":"%ds"}}]}`, resources.RoleWorkloadOwner, false},
		{"a producer again", own, resources.RoleProducer, true},
		{"a producer for another zone", `{"targetRef":{"kind":"MeshSubset","tags":{"kuma.io/zone":"zone-9"}},"to":[{"targetRef":{"kind":"MeshService","name":"b"},"default":{"idleTimeout":"%ds"}}]}`, resources.RoleProducer, false},
		{"a producer for this zone", `{"targetRef":{"kind":"MeshSubset","tags":{"kuma.io/zone":"zone-2"}},"to":[{"targetRef":{"kind":"MeshService","name":"b"},"default":{"idleTimeout":"%ds"}}]}`, resources.RoleProducer, true},
		{"a policy on an external service", `{"to":[{"targetRef":{"kind":"MeshExternalService","name":"b"},"default":{"idleTimeout":"%ds"}}]}`, resources.RoleConsumer, false},
	} {
		marker := fmt.Sprintf(`"idleTimeout":"%ds"`, i+1)
		put(t, s1, written(t, zoneHome("zone-1"), key, fmt.Sprintf(step.spec, i+1)))
		current := func(s store.Reader) bool {
			r := find(s, key.Type, key.Name)
			return r != nil && contains(r, marker) && r.Labels[resources.LabelPolicyRole] == string(step.role)
		}
		eventually(t, step.what+" on the global", func() bool { return current(g.store) })
		if step.crosses {
			eventually(t, step.what+" in the other zone", func() bool { return current(s2) })
			continue
		}
		later := key // crosses, and not before what was written before it
		later.Name = fmt.Sprintf("later-%d", i)
		put(t, s1, written(t, zoneHome("zone-1"), later, fmt.Sprintf(own, i+1)))
		eventually(t, "what came after "+step.what, func() bool { return find(s2, later.Type, later.Name) != nil })
		eventually(t, step.what+" not in the other zone", func() bool { return find(s2, key.Type, key.Name) == nil })
	}
}

func contains(r *resources.Resource, text string) bool {
	return bytes.Contains(r.Spec.JSON(), []byte(text))
}

// TestOwnersCross checks servers whose system namespaces have different names. The owner of a service and of a grant is
// the same everywhere: one of an ordinary namespace does not become the operator's on a server whose system namespace
// has that name, and the operator's stays the operator's on a server where its namespace is ordinary.
func TestOwnersCross(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.Validate = resources.ValidatePeer })
	s1, s2 := store.NewMemory(), store.NewMemory()
	system := func(name string) func(*ZoneConfig) {
		return func(c *ZoneConfig) { c.SystemNamespace, c.Validate = name, resources.PeerValidation(name) }
	}
	first := startZone(t, "zone-1", g.address, s1, system("mesh-one"))
	second := startZone(t, "zone-2", g.address, s2, system("shop"))
	specs := map[resources.Type]string{
		resources.TypeMeshService:        `{"ports":[{"port":80}]}`,
		resources.TypeMeshReferenceGrant: `{"from":[{"kind":"MeshHTTPRoute","zone":"zone-2","namespace":"cats"}],"to":[{"kind":"MeshService"}]}`,
	}
	namespaces := map[string]string{"mesh-one": "", "kuma-system": "kuma-system", "shop": "shop"}
	home := resources.Home{Zone: "zone-1", SystemNamespace: "mesh-one"}
	for typ, spec := range specs {
		for namespace := range namespaces {
			put(t, s1, written(t, home, resources.Key{Type: typ, Mesh: "default", Namespace: namespace,
				Name: "of-" + namespace}, spec))
		}
	}
	check := func(what string, s store.Reader, system string) {
		t.Helper()
		for typ := range specs {
			for namespace, owner := range namespaces {
				name, want := "of-"+namespace, resources.Owner{Zone: "zone-1", Namespace: owner}
				eventually(t, fmt.Sprintf("the %s of %s to be of %q %s", typ, namespace, owner, what), func() bool {
					r := find(s, typ, name)
					return r != nil && resources.OwnerOf(r, system) == want
				})
			}
		}
	}
	check("on the global", g.store, resources.DefaultSystemNamespace)
	check("in the other zone", s2, "shop")

	// Copies from before are judged again when their zone reconnects.
	first.stop()
	second.stop()
	for _, s := range []store.Store{g.store, s2} {
		for typ := range specs {
			r := find(s, typ, "of-shop").Clone()
			delete(r.Labels, resources.LabelPolicyRole)
			put(t, s, r)
		}
	}
	startZone(t, "zone-1", g.address, s1, system("mesh-one"))
	startZone(t, "zone-2", g.address, s2, system("shop"))
	check("on the global, after an upgrade", g.store, resources.DefaultSystemNamespace)
	check("in the other zone, after an upgrade", s2, "shop")
}

// TestGlobalOfAnotherNamespace checks that a global whose users write in its system namespace, as those of a global in
// Kubernetes do, works with zones that call theirs something else. Everything arrives as the operator's. A zone's
// reference to a service of the global leads to its copy in every zone.
func TestGlobalOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	home := resources.Home{SystemNamespace: "causeway-system"}
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) {
		c.SystemNamespace, c.Validate = home.SystemNamespace, resources.ValidatePeer
	})
	specs := map[resources.Type]string{
		resources.TypeMeshTimeout:          `{"rules":[{"default":{"idleTimeout":"1s"}}]}`,
		resources.TypeMeshIdentity:         `{"provider":{"type":"Bundled"}}`,
		resources.TypeMeshExternalService:  `{"match":{"type":"HostnameGenerator","port":443,"protocol":"http"},"endpoints":[{"address":"example.com","port":443}]}`,
		resources.TypeMeshMultiZoneService: `{"selector":{"meshService":{"matchLabels":{"a":"b"}}},"ports":[{"port":80}]}`,
		resources.TypeMeshReferenceGrant:   `{"from":[{"kind":"MeshHTTPRoute","zone":"zone-2","namespace":"cats"}],"to":[{"kind":"MeshService","zone":"zone-1","namespace":"shop"}]}`,
	}
	for typ, spec := range specs {
		put(t, g.store, written(t, home, resources.Key{Type: typ, Mesh: "default", Namespace: home.SystemNamespace, Name: "of-global"}, spec))
	}
	own := store.NewMemory()
	kind := map[string]resources.Type{"multi": resources.TypeMeshMultiZoneService, "external": resources.TypeMeshExternalService}
	for name, to := range kind {
		put(t, own, written(t, zoneHome("zone-1"), resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: name},
			fmt.Sprintf(`{"to":[{"targetRef":{"kind":%q,"name":"of-global"},"default":{"idleTimeout":"1s"}}]}`, to)))
	}
	for name, s := range map[string]store.Store{resources.DefaultSystemNamespace: own, "mesh-two": store.NewMemory()} {
		startZone(t, map[bool]string{true: "zone-1", false: "zone-2"}[s == own], g.address, s, func(c *ZoneConfig) {
			c.SystemNamespace, c.Validate = name, resources.PeerValidation(name)
		})
		for typ := range specs {
			eventually(t, fmt.Sprintf("the %s in the zone with %s", typ, name), func() bool {
				r := find(s, typ, "of-global")
				return r != nil && resources.OwnerOf(r, name) == resources.Owner{} && r.Labels[resources.LabelNamespace] == home.SystemNamespace
			})
		}
	}
	for name, to := range kind {
		want := find(own, to, "of-global").Name
		eventually(t, "the reference to the copy of a "+string(to), func() bool {
			r := find(g.store, resources.TypeMeshTimeout, name)
			return r != nil && contains(r, `"name":"`+want+`"`) && contains(r, `"namespace":"causeway-system"`)
		})
	}
}
