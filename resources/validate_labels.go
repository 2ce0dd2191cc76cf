package resources

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Reserved name spaces of label keys.
var reservedPrefixes = []string{"kuma.io/", "k8s.kuma.io/"}

var qualifiedPart = regexp.MustCompile(`^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$`)

// labels checks the syntax of labels. A label in a reserved name space must be one that users may set, one that home
// computes, or one that other control planes compute and export.
func (v *validation) labels() {
	if len(v.resource.Labels) > MaxLabels {
		v.fail(top("labels"), "has %d labels, more than %d", len(v.resource.Labels), MaxLabels)
		return
	}
	if len(v.resource.Labels) == 0 {
		return
	}
	computed := v.computed()
	for _, key := range slices.Sorted(maps.Keys(v.resource.Labels)) {
		value := v.resource.Labels[key]
		at := labelPath(key)
		want, isComputed := computed[key]
		switch {
		case isComputed:
			if value != want {
				v.fail(at, "is computed and must be %q here: leave it out", want)
			}
		case isReserved(key):
			v.reservedLabel(at, key, value)
		case key == LabelUnguarded, key == LabelRequired:
			v.proxyPatchLabel(at, key, value)
		default:
			v.labelSyntax(at, key, value)
		}
	}
}

func labelPath(key string) *fieldPath { return top("labels").field(key) }

func isReserved(key string) bool {
	return slices.ContainsFunc(reservedPrefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

// reservedLabel checks a label in a reserved name space that home does not compute for this resource.
func (v *validation) reservedLabel(at *fieldPath, key, value string) {
	onDataplane := v.resource.Type == TypeDataplane
	switch key {
	case LabelSync:
		v.valueIsOneOf(at, value, SyncEnabled, SyncDisabled)
	case LabelEffect:
		v.valueIsOneOf(at, value, EffectShadow)
	case LabelWorkload, LabelServiceAccount:
		if !onDataplane {
			v.fail(at, "only a Dataplane may carry it")
		} else if !isSubdomain(value) {
			v.fail(at, "%q is not a name: want %s", shorten(value), wantSubdomain)
		}
	case LabelNamespace:
		v.fail(at, "follows from namespace: set that instead")
	case LabelZone, LabelPolicyRole, LabelMesh:
		v.fail(at, "is computed and absent here: leave it out")
	default:
		if slices.Contains(carriedLabels, key) {
			v.labelSyntax(at, key, value)
			return
		}
		v.fail(at, "unknown label in a reserved namespace%s",
			Suggestion(key, []string{LabelSync, LabelEffect, LabelWorkload, LabelServiceAccount}))
	}
}

// proxyPatchLabel checks a label that only a MeshProxyPatch may carry.
func (v *validation) proxyPatchLabel(at *fieldPath, key, value string) {
	if v.resource.Type != TypeMeshProxyPatch {
		v.fail(at, "only a MeshProxyPatch may carry it")
		return
	}
	if v.valueIsOneOf(at, value, "true") && key == LabelUnguarded && v.home.Zone == "" {
		v.fail(at, "counts only in the zone where the policy is written: write it to that zone's API")
	}
}

// valueIsOneOf checks the value of a label that has few.
func (v *validation) valueIsOneOf(at *fieldPath, value string, want ...string) bool {
	if slices.Contains(want, value) {
		return true
	}
	v.fail(at, "want \"%s\", got %q", strings.Join(want, `" or "`), shorten(value))
	return false
}

// labelSyntax checks a key and value by the rules of Kubernetes for qualified names and label values.
func (v *validation) labelSyntax(at *fieldPath, key, value string) {
	prefix, name, qualified := strings.Cut(key, "/")
	if !qualified {
		prefix, name = "", key
	}
	if qualified && !isSubdomain(prefix) || len(name) > MaxShortNameBytes || !qualifiedPart.MatchString(name) {
		v.fail(at, "is not a label key: want at most 63 letters, digits, '-', '_' and '.', with an optional DNS name and '/' in front")
	}
	if value != "" && (len(value) > MaxShortNameBytes || !qualifiedPart.MatchString(value)) {
		v.fail(at, "%q is not a label value: want at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit", shorten(value))
	}
}
