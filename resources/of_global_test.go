package resources_test

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
)

// copied returns a resource as other servers get it: without a namespace, under its hashed name.
func copied(t *testing.T, home resources.Home, typ resources.Type, namespace, spec string) *resources.Resource {
	t.Helper()
	r := policyIn(t, home, typ, namespace, spec)
	r.Namespace, r.Name = "", hashing.Name(r.Mesh, r.Name, home.Zone, namespace)
	return r
}

// TestNamespaceOfTheGlobal checks that a zone takes what the global wrote for its operator's, whatever the system
// namespaces of both are called: the global has no other namespace (seed 004, "Namespace-scoped policies and
// multizone").
func TestNamespaceOfTheGlobal(t *testing.T) {
	global := resources.Home{SystemNamespace: "causeway-system"}
	for typ, spec := range map[resources.Type]string{
		resources.TypeMeshTrafficPermission: `{"default":{"deny":[{"spiffeId":{"type":"Prefix","value":"spiffe://a/"}}]}}`,
		resources.TypeMeshTimeout:           `{"to":[{"targetRef":{"kind":"Mesh"},"default":{"idleTimeout":"1s"}}]}`,
		resources.TypeMeshHTTPRoute:         `{"targetRef":{"kind":"MeshGateway","name":"edge"},"to":[{"targetRef":{"kind":"Mesh"},"rules":[{"default":{"backendRefs":[{"kind":"MeshService","name":"b","namespace":"shop","port":80}]}}]}]}`,
		resources.TypeMeshAccessLog:         `{"to":[{"targetRef":{"kind":"MeshService","name":"b","namespace":"causeway-system"},"default":{"backends":[{"type":"File","file":{"path":"/var/log/calls.log"}}]}}]}`,
		resources.TypeMeshIdentity:          `{"provider":{"type":"Bundled"}}`,
		resources.TypeMeshExternalService:   `{"match":{"type":"HostnameGenerator","port":443,"protocol":"http"},"endpoints":[{"address":"example.com","port":443}]}`,
		resources.TypeMeshMultiZoneService:  `{"selector":{"meshService":{"matchLabels":{"a":"b"}}},"ports":[{"port":80}]}`,
		resources.TypeMeshReferenceGrant:    `{"from":[{"kind":"MeshHTTPRoute","zone":"zone-2","namespace":"cats"}],"to":[{"kind":"MeshService","zone":"zone-1","namespace":"shop"}]}`,
	} {
		r := copied(t, global, typ, "causeway-system", spec)
		for _, system := range []string{"kuma-system", "mesh-one", "causeway-system"} {
			if err := resources.ValidatePeer(r, system); err != nil {
				t.Errorf("a zone whose system namespace is %s refuses it: %v", system, err)
			}
			if got := resources.OwnerOf(r, system); got != (resources.Owner{}) {
				t.Errorf("%s belongs to %+v where the system namespace is %s", typ, got, system)
			}
			if got := resources.RoleOf(r, system); typ == resources.TypeMeshTimeout && got != resources.RoleSystem {
				t.Errorf("its role is %s where the system namespace is %s", got, system)
			}
		}
		// A user of the global writes it nowhere else.
		if err := resources.Validate(policyIn(t, global, typ, "shop", spec), global); err == nil {
			t.Errorf("the global takes a %s of the namespace shop", typ)
		}
	}
}

// TestNamespaceOfTheGlobalIsNoZones checks what the rule leaves alone: a zone's resource in a namespace that has the
// name of the global's, and resources of the Service Mesh Interface, which have a namespace on the global too.
func TestNamespaceOfTheGlobalIsNoZones(t *testing.T) {
	zone := resources.Home{Zone: "zone-1"}
	for typ, c := range map[resources.Type]struct {
		home       resources.Home
		spec, want string
	}{
		resources.TypeMeshIdentity: {zone, `{"provider":{"type":"Bundled"}}`, "lives in the system namespace only"},
		resources.TypeMeshTimeout: {zone, `{"to":[{"targetRef":{"kind":"MeshService","name":"b"},"default":{}},{"targetRef":{"kind":"Mesh"},"default":{}}]}`,
			"is a producer's"},
		resources.TypeTrafficTarget: {resources.Home{}, `{"destination":{"kind":"ServiceAccount","name":"b","namespace":"shop"},"sources":[{"kind":"ServiceAccount","name":"a"}],"rules":[{"kind":"TCPRoute","name":"r"}]}`,
			"opens service accounts of that namespace only"},
	} {
		r := copied(t, c.home, typ, "causeway-system", c.spec)
		err := resources.ValidatePeer(r, resources.DefaultSystemNamespace)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want an error with %q, got %v", typ, c.want, err)
		}
		if got := resources.OwnerOf(r, resources.DefaultSystemNamespace); typ == resources.TypeMeshTimeout && got.Namespace != "causeway-system" {
			t.Errorf("a policy of an ordinary namespace belongs to %+v", got)
		}
	}
}
