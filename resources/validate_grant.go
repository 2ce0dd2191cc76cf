package resources

import "slices"

// maxGrantItems bounds each list of a MeshReferenceGrant.
const maxGrantItems = 64

var (
	grantingRoutes = []string{KindMeshHTTPRoute, KindMeshTCPRoute}
	grantedKinds   = []string{KindMeshService, KindMeshMultiZoneService, KindMeshExternalService}
)

// referenceGrant checks that a grant gives access only to what its owner owns.
func (v *validation) referenceGrant(g *MeshReferenceGrant) {
	at, own := v.specPath(), v.owner()
	v.grantItems(len(g.From), at.field("from"))
	v.grantItems(len(g.To), at.field("to"))
	for i := range min(len(g.From), maxGrantItems) {
		v.grantFrom(&g.From[i], own, at.field("from").item(i))
	}
	for i := range min(len(g.To), maxGrantItems) {
		v.grantTo(&g.To[i], own, at.field("to").item(i))
	}
}

func (v *validation) grantItems(n int, at *fieldPath) {
	switch {
	case n == 0:
		v.fail(at, "is empty: give at least one")
	case n > maxGrantItems:
		v.fail(at, "has %d items, more than %d", n, maxGrantItems)
	}
}

func (v *validation) grantFrom(f *GrantFrom, own Owner, at *fieldPath) {
	if !slices.Contains(grantingRoutes, f.Kind) {
		v.fail(at.field("kind"), "want MeshHTTPRoute or MeshTCPRoute, got %q", shorten(f.Kind))
	}
	v.label(at.field("namespace"), f.Namespace)
	switch {
	case f.Zone != "":
		v.label(at.field("zone"), f.Zone)
	case own.IsGlobal():
		v.fail(at.field("zone"), "is required on the global: name the zone whose routes may")
	}
}

// grantedBy refuses an item without effect, because services of the kind belong to operators.
func (v *validation) grantedBy(kind Type, own Owner, at *fieldPath) {
	d, ok := Lookup(kind)
	switch {
	case !ok || !systemOnly(d):
	case d.WrittenOn == OnGlobal && !own.IsGlobal() && !v.home.Alone:
		v.fail(at.field("kind"), "a %s belongs to the operator of the mesh, who grants it on the global", kind)
	case !own.IsOperator():
		v.fail(at.field("kind"), "a %s belongs to the operator of the zone: write the grant in %s", kind,
			v.home.systemNamespace())
	}
}

func (v *validation) grantTo(t *GrantTo, own Owner, at *fieldPath) {
	if !slices.Contains(grantedKinds, t.Kind) {
		v.fail(at.field("kind"), "want MeshService, MeshMultiZoneService or MeshExternalService, got %q", shorten(t.Kind))
	}
	v.grantedBy(Type(t.Kind), own, at)
	for _, part := range []struct{ name, value string }{{"zone", t.Zone}, {"namespace", t.Namespace}} {
		if part.value != "" {
			v.label(at.field(part.name), part.value)
		}
	}
	if t.Name != "" && !isSubdomain(t.Name) {
		v.fail(at.field("name"), "%q is not a name: want %s", shorten(t.Name), wantSubdomain)
	}
	if t.Name != "" && len(t.Labels) > 0 {
		v.fail(at.field("labels"), "cannot be combined with name: use one of them")
	}
	if len(t.Labels) > MaxLabels {
		v.fail(at.field("labels"), "has %d labels, more than %d", len(t.Labels), MaxLabels)
		return
	}
	for key, value := range t.Labels {
		v.labelSyntax(at.field("labels").field(key), key, value)
	}
	if t.Zone != "" && !own.IsGlobal() && t.Zone != own.Zone {
		v.fail(at.field("zone"), "%s is not the grant's own zone %s: the owners of that zone's services grant this, or the operator of the mesh on the global", t.Zone, own.Zone)
	}
	if t.Namespace != "" && !own.IsOperator() && t.Namespace != own.Namespace {
		v.fail(at.field("namespace"), "%s is not the grant's own namespace %s: write the grant in that namespace, or in %s", t.Namespace, own.Namespace, v.home.systemNamespace())
	}
}
