package resources

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// refName is looser than the rule for a resource's name: names of legacy services contain underscores.
var refName = regexp.MustCompile(`^[a-z0-9]([-_.a-z0-9]*[a-z0-9])?$`)

// targetRef checks a reference. A nil or empty one means Mesh. The fields are those of Kuma's targetRef.
func (v *validation) targetRef(ref *TargetRef, at *fieldPath, rules refRules) {
	if ref == nil {
		return
	}
	kind := ref.KindOrMesh()
	if !slices.Contains(rules.kinds, kind) {
		v.fail(at.field("kind"), "%s is not a valid kind here, want one of %s%s", quoteKind(kind),
			strings.Join(rules.kinds, ", "), rules.because)
		return
	}
	v.refIdentity(ref, kind, at)
	v.refExtras(ref, kind, at, rules)
}

func quoteKind(kind string) string { return `"` + shorten(kind) + `"` }

// refIdentity checks name, namespace and labels.
func (v *validation) refIdentity(ref *TargetRef, kind string, at *fieldPath) {
	named := slices.Contains(needsName, kind)
	if kind == KindMesh || kind == KindMeshSubset {
		v.mustBeEmpty(ref.Name != "", at.field("name"), kind)
		v.mustBeEmpty(ref.Namespace != "", at.field("namespace"), kind)
		if kind == KindMeshSubset && len(ref.Labels) > 0 { // removing them would widen the policy
			v.fail(at.field("labels"), "a MeshSubset is selected by tags: select by labels with kind Dataplane, or use tags")
			return
		}
		v.mustBeEmpty(len(ref.Labels) > 0, at.field("labels"), kind)
		return
	}
	switch {
	case ref.Name != "" && len(ref.Labels) > 0:
		v.fail(at.field("labels"), "cannot be combined with name: use one of them")
	case ref.Namespace != "" && len(ref.Labels) > 0:
		v.fail(at.field("namespace"), "cannot be combined with labels: use the label %s", LabelNamespace)
	case ref.Namespace != "" && ref.Name == "":
		v.fail(at.field("namespace"), "has no meaning without a name")
	case named && ref.Name == "" && len(ref.Labels) == 0:
		v.fail(at.field("name"), "is required for %s, or labels", kind)
	}
	if ref.Name != "" && (len(ref.Name) > MaxNameBytes || !refName.MatchString(ref.Name)) {
		v.fail(at.field("name"), "%q is not a name: want %s", shorten(ref.Name), wantSubdomain)
	}
	if ref.Namespace != "" {
		v.label(at.field("namespace"), ref.Namespace)
	}
	for _, key := range slices.Sorted(maps.Keys(ref.Labels)) {
		v.labelSyntax(at.field("labels").field(key), key, ref.Labels[key])
	}
}

// refExtras checks tags, sectionName, proxyTypes and mesh.
func (v *validation) refExtras(ref *TargetRef, kind string, at *fieldPath, rules refRules) {
	if kind != KindMeshSubset && kind != KindMeshServiceSubset && kind != KindMeshGateway {
		v.mustBeEmpty(len(ref.Tags) > 0, at.field("tags"), kind)
	}
	if ref.SectionName != "" {
		switch {
		case !slices.Contains(rules.sections, kind):
			v.fail(at.field("sectionName"), "has no meaning for %s here", kind)
		case len(ref.SectionName) > MaxShortNameBytes || !dnsLabel.MatchString(ref.SectionName):
			v.fail(at.field("sectionName"), "%q is not the name or number of a port", shorten(ref.SectionName))
		}
	}
	for i, t := range ref.ProxyTypes {
		if t != "Sidecar" && t != "Gateway" {
			v.fail(at.field("proxyTypes").item(i), "want Sidecar or Gateway, got %q", shorten(t))
		}
	}
	if len(ref.ProxyTypes) > 0 && kind != KindMesh && kind != KindMeshSubset {
		v.fail(at.field("proxyTypes"), "has no meaning for %s", kind)
	}
	if ref.Mesh != "" && ref.Mesh != v.resource.Mesh {
		v.fail(at.field("mesh"), "a policy only reaches its own mesh: leave it out")
	}
}

func (v *validation) mustBeEmpty(set bool, at *fieldPath, kind string) {
	if set {
		v.fail(at, "has no meaning for %s: leave it out", kind)
	}
}
