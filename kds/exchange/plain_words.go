package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// plainPaths drops the slash at the end of the path prefixes of a MeshHTTPRoute: a prefix ends at a segment with or
// without it, but Kuma takes it only without.
func plainPaths(spec []byte) ([]byte, error) {
	if !bytes.Contains(spec, []byte(`/"`)) {
		return spec, nil
	}
	dec := json.NewDecoder(bytes.NewReader(spec))
	dec.UseNumber()
	var policy map[string]any
	if err := dec.Decode(&policy); err != nil {
		return nil, err
	}
	changed := false
	resources.EachObject(policy["to"], "to", func(_ string, to map[string]any) {
		resources.EachObject(to["rules"], "rules", func(_ string, rule map[string]any) {
			resources.EachObject(rule["matches"], "matches", func(_ string, match map[string]any) {
				path, _ := match["path"].(map[string]any)
				value := text(path["value"])
				if text(path["type"]) != "PathPrefix" || len(value) < 2 || !strings.HasSuffix(value, "/") {
					return
				}
				path["value"], changed = "/"+strings.Trim(value, "/"), true
			})
		})
	})
	if !changed {
		return spec, nil
	}
	return marshal(policy)
}

// ownRetryCondition is a condition of `retryOn` that Kuma does not know. Those that stand beside it retry what it does
// but for streams that are reset before they carry a request.
const ownRetryCondition = "ResetBeforeRequest"

// plainRetries drops ownRetryCondition from a MeshRetry.
func plainRetries(spec []byte) ([]byte, error) {
	if !bytes.Contains(spec, []byte(ownRetryCondition)) {
		return spec, nil
	}
	var policy map[string]any
	dec := json.NewDecoder(bytes.NewReader(spec))
	dec.UseNumber()
	if err := dec.Decode(&policy); err != nil {
		return nil, err
	}
	resources.EachObject(policy["to"], "to", func(_ string, to map[string]any) {
		conf, _ := to["default"].(map[string]any)
		for _, protocol := range []string{"http", "grpc"} {
			if requests, ok := conf[protocol].(map[string]any); ok {
				if on, ok := requests["retryOn"].([]any); ok {
					requests["retryOn"] = slices.DeleteFunc(on, func(item any) bool { return text(item) == ownRetryCondition })
				}
			}
		}
	})
	return marshal(policy)
}

// errNoForm reports that a resource has no form that the peer knows.
var errNoForm = errors.New("cannot be said in the words that the peer knows")

func plainWords(r *resources.Resource, a *Audience) error {
	if a.Features.Has(FeatureHTTPPermissions) {
		return nil
	}
	raw, err := plainPolicy(r.Descriptor(), r.Spec.JSON())
	if err != nil || bytes.Equal(raw, r.Spec.JSON()) {
		return err
	}
	spec, err := resources.NewSpec(r.Type, raw)
	if err != nil {
		return err
	}
	r.Spec = spec
	return nil
}

// zonesAsLabel replaces the zones of a MeshMultiZoneService, for a peer that would ignore them and join all services:
// one zone becomes its label.
func zonesAsLabel(r *resources.Resource, a *Audience) error {
	if r.Type != resources.TypeMeshMultiZoneService || a.Features.Has(FeatureReferenceGrants) {
		return nil
	}
	spec, err := resources.SpecAs[resources.MeshMultiZoneService](r)
	if err != nil || len(spec.Selector.MeshService.Zones) == 0 {
		return err
	}
	if len(spec.Selector.MeshService.Zones) > 1 {
		return fmt.Errorf("%w: it lists several zones", errNoForm)
	}
	plain := *spec
	match := &plain.Selector.MeshService
	match.MatchLabels = maps.Clone(match.MatchLabels)
	match.MatchLabels[resources.LabelZone] = match.Zones[0]
	match.Zones = nil
	r.Spec, err = resources.NewSpecOf(r.Type, &plain)
	return err
}
