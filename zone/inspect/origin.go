package inspect

import (
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Meta names a resource as this server has it.
type Meta struct {
	Type      resources.Type    `json:"type"`
	Mesh      string            `json:"mesh,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
	KRI       string            `json:"kri,omitempty"`
}

func metaOf(r *resources.Resource) Meta {
	labels := r.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	return Meta{
		Type: r.Type, Mesh: r.Mesh, Namespace: r.Namespace, Name: r.Name, Labels: labels, KRI: resources.KRIOf(r).String(),
	}
}

// Place is the position of an item among those that were merged, or among the rules of an inbound.
type Place struct {
	// RuleIndex is the item's index in its policy: in `to`, `from` or `rules`.
	RuleIndex int `json:"ruleIndex"`
	// Position counts from 1. Where items are merged, the last wins.
	Position int `json:"position"`
	// DecidedBy is the reason why the item follows the previous: "zone origin beats global origin". Empty for the
	// first.
	DecidedBy string `json:"decidedBy,omitempty"`
}

// Origin is an item of a policy that contributed to a conf. Source: seed 002, "Inspect API".
type Origin struct {
	ResourceMeta Meta   `json:"resourceMeta"`
	KRI          string `json:"kri"`
	Place
}

// LegacyOrigin is an Origin with its resource at the top level, as rules by tags have it.
type LegacyOrigin struct {
	Meta
	Place
}

// Ref names a policy.
type Ref struct {
	KRI string `json:"kri"`
}

// places returns the place of each merged item, in order.
func places(origins []matching.Origin) []Place {
	out := make([]Place, len(origins))
	for i, o := range origins {
		out[i] = Place{RuleIndex: o.RuleIndex, Position: i + 1}
		if i > 0 {
			out[i].DecidedBy = matching.Why(origins[i-1].Order(), o.Order())
		}
	}
	return out
}

func originsOf(list []matching.Origin) []Origin {
	out := make([]Origin, len(list))
	for i, place := range places(list) {
		out[i] = Origin{ResourceMeta: metaOf(list[i].Policy.Resource), KRI: list[i].KRI().String(), Place: place}
	}
	return out
}

func legacyOrigins(list []matching.Origin) []LegacyOrigin {
	out := make([]LegacyOrigin, len(list))
	for i, place := range places(list) {
		out[i] = LegacyOrigin{Meta: metaOf(list[i].Policy.Resource), Place: place}
	}
	return out
}

// refsOf returns the policies of merged items, each once, in order.
func refsOf(list []matching.Origin) []Ref {
	out := []Ref{}
	for _, o := range list {
		out = appendRef(out, o.KRI().String())
	}
	return out
}

func appendRef(list []Ref, kri string) []Ref {
	for _, have := range list {
		if have.KRI == kri {
			return list
		}
	}
	return append(list, Ref{KRI: kri})
}

// appendTexts adds the warnings that are not in texts yet.
func appendTexts(texts []string, lists ...[]matching.Warning) []string {
	for _, list := range lists {
		for _, w := range list {
			texts = addTexts(texts, []string{w.String()})
		}
	}
	return texts
}

func addTexts(texts, more []string) []string {
	for _, text := range more {
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}
