package resources

// maxHostnameLabels bounds the labels of a selector.
const maxHostnameLabels = 32

// hostnameGenerator checks the selector and the template. A peer's template may render what ours cannot. Its services
// then get no name from it, and say so.
func (v *validation) hostnameGenerator(g *HostnameGenerator) {
	at := v.specPath()
	if v.peer {
		return
	}
	v.hostnameSelector(&g.Selector, at.field("selector"))
	if g.Template == "" {
		v.fail(at.field("template"), "is required: a host name, such as {{ .DisplayName }}.svc.mesh.local")
		return
	}
	if _, err := ParseHostnameTemplate(g.Template); err != nil {
		v.fail(at.field("template"), "%v", err)
	}
}

func (v *validation) hostnameSelector(s *HostnameSelector, at *fieldPath) {
	selectors := map[string]*LabelSelector{"meshService": s.MeshService, "meshExternalService": s.MeshExternalService,
		"meshMultiZoneService": s.MeshMultiZoneService}
	set := 0
	for name, selector := range selectors {
		if selector == nil {
			continue
		}
		set++
		inside := at.field(name).field("matchLabels")
		if !v.few(len(selector.MatchLabels), maxHostnameLabels, inside) {
			continue
		}
		for key := range selector.MatchLabels {
			if key == "" {
				v.fail(inside, "has a label without a name")
			}
		}
	}
	if set != 1 {
		v.fail(at, "want exactly one of meshService, meshExternalService and meshMultiZoneService, got %d", set)
	}
}
