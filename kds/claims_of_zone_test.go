package kds

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestWhatAZoneClaimsOfItsResources checks that a resource, whatever owner a zone claims for it, is refused by name, or
// stored as the zone's own, beside what others have.
func TestWhatAZoneClaimsOfItsResources(t *testing.T) {
	t.Parallel()
	label := func(key, value string) func(*resources.Resource) {
		return func(r *resources.Resource) { r.Labels[key] = value }
	}
	for name, row := range map[string]struct {
		change  func(*resources.Resource)
		refused string // a part of the reason; "" if it is stored
	}{
		"nothing odd":              {func(*resources.Resource) {}, ""},
		"the global's origin":      {label(resources.LabelOrigin, resources.OriginGlobal), ""},
		"an origin that is none":   {label(resources.LabelOrigin, "\u202eglobal"), ""},
		"another zone":             {label(resources.LabelZone, "zone-2"), ""},
		"no zone":                  {func(r *resources.Resource) { delete(r.Labels, resources.LabelZone) }, ""},
		"the system's role":        {label(resources.LabelPolicyRole, string(resources.RoleSystem)), ""},
		"another mesh by label":    {label(resources.LabelMesh, "other"), ""},
		"kept from sync":           {label(resources.LabelSync, resources.SyncDisabled), ""},
		"a path for a name":        {label(resources.LabelDisplayName, "../../mesh"), "its name does not match"},
		"a long name":              {label(resources.LabelDisplayName, strings.Repeat("a", 1<<20)), "labels are larger"},
		"a name with an escape":    {label(resources.LabelDisplayName, "a\x1b[2J"), "printable characters"},
		"a namespace with a slash": {label(resources.LabelNamespace, "cats/../system"), "its name does not match"},
		"the system namespace": {label(resources.LabelNamespace, resources.DefaultSystemNamespace),
			"its name does not match"},
		"another's name on the wire": {func(r *resources.Resource) { r.Name = "theirs" }, "its name does not match"},
		"no mesh":                    {func(r *resources.Resource) { r.Mesh = "" }, "mesh"},
		"a mesh that is a path":      {func(r *resources.Resource) { r.Mesh = "../x" }, "NAME.MESH"},
		"a mesh that is not there":   {func(r *resources.Resource) { r.Mesh = "elsewhere" }, "its name does not match"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			says, stored := arrivesFrom(t, "zone-1", row.change)
			if row.refused != "" {
				if !strings.Contains(says, row.refused) || stored != nil {
					t.Errorf("%q does not say %q; stored: %v", says, row.refused, stored)
				}
				return
			}
			switch {
			case says != "" || stored == nil:
				t.Errorf("refused: %s", says)
			case stored.Zone() != "zone-1" || stored.Labels[resources.LabelOrigin] != resources.OriginZone ||
				stored.Labels[resources.LabelMesh] != "default" ||
				stored.Labels[resources.LabelPolicyRole] == string(resources.RoleSystem):
				t.Errorf("stored as %v", stored.Labels)
			}
		})
	}
}

// arrivesFrom sends the global a timeout of the namespace cats as a zone would, after change, and returns the answer
// and what is stored beside the two resources that were there, which stay.
func arrivesFrom(t *testing.T, zone string, change func(*resources.Resource)) (says string,
	stored *resources.Resource) {
	t.Helper()
	s := store.NewMemory()
	put(t, s, written(t, globalHome, ZoneKey(zone), `{}`))
	put(t, s, written(t, globalHome, resources.Key{Type: resources.TypeMesh, Name: "default"}, `{}`))
	const spec = `{"targetRef":{"kind":"Dataplane"},"rules":[{"default":{"idleTimeout":"1s"}}]}`
	ours := written(t, globalHome, resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "ours"}, spec)
	theirs := written(t, zoneHome("zone-2"), resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default",
		Name: "theirs"}, spec)
	put(t, s, ours)
	put(t, s, theirs)
	key := resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Namespace: "cats", Name: "x"}
	out, err := exchange.NewMapping().Outbound(written(t, zoneHome(zone), key, spec),
		&exchange.Audience{Direction: exchange.ZoneToGlobal, Zone: zone, Features: exchange.OwnFeatures()})
	if err != nil {
		t.Fatal(err)
	}
	change(out)
	wire, err := Encode(out)
	if err != nil {
		t.Fatal(err)
	}
	v := testReceiver(exchange.ZoneToGlobal, s)
	v.arrival.SystemNamespace, v.arrival.Zone = resources.DefaultSystemNamespace, zone
	answer, err := v.handle(t.Context(), &discovery.DeltaDiscoveryResponse{TypeUrl: string(key.Type), Nonce: "1",
		Resources: []*discovery.Resource{wire}})
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for r := range s.Snapshot().List(store.Query{Type: key.Type}) {
		if r.Key == ours.Key || r.Key == theirs.Key {
			kept++
			continue
		}
		stored = r
	}
	if kept != 2 {
		t.Errorf("of what others have, %d of 2 are left", kept)
	}
	return answer.GetErrorDetail().GetMessage(), stored
}
