package xds

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// half gives a policy that is there another half, takes one away, makes it one that cannot be read, or changes only whom it
// selects or a label.
func (c *changing) half() {
	var all []*resources.Resource
	for _, typ := range c.types {
		all = slices.AppendSeq(all, c.store.Snapshot().List(store.Query{Type: typ, Mesh: "default"}))
	}
	if len(all) == 0 {
		return
	}
	old := all[c.dice.IntN(len(all))]
	spec := map[string]any{}
	if err := json.Unmarshal(old.Spec.JSON(), &spec); err != nil {
		c.t.Fatal(err)
	}
	labels := maps.Clone(old.Labels)
	switch c.dice.IntN(6) {
	case 0:
		spec["targetRef"] = map[string]any{"kind": c.one("Mesh", "Dataplane")}
	case 1:
		label := resources.LabelEffect
		if old.Type == resources.TypeMeshProxyPatch {
			label = c.one(label, resources.LabelRequired, resources.LabelUnguarded).(string)
		}
		labels[label] = c.one("shadow", "true", "").(string)
	case 2:
		name := c.one("to", "rules", "from", "default").(string)
		if c.chance(2) {
			spec[name] = "it is not a list"
		} else {
			spec[name] = []any{}
		}
	case 3:
		of := c.lists[old.Type][c.dice.IntN(len(c.lists[old.Type]))]
		spec[of.name] = c.less(of.items)
	default:
		delete(spec, c.one("to", "rules", "from").(string))
	}
	c.put(old.Key, labels, spec)
}

// egress writes or removes an egress of the zone.
func (c *changing) egress(name string) {
	key := dataplaneKey(name)
	if c.chance(3) {
		c.apply(store.Op{Delete: key})
		return
	}
	c.put(key, map[string]string{"app": c.one("backend", "other").(string)}, map[string]any{"networking": map[string]any{
		"address": "192.0.2.90", "listeners": []any{map[string]any{"type": "ZoneEgress", "port": 10002 + c.dice.IntN(2), "name": "out",
			"state": c.one("Ready", "NotReady")}}}})
}

// less returns a value without some of its fields.
func (c *changing) less(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = c.less(v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if slices.Contains([]string{"targetRef", "default", "kind", "name", "type"}, name) || !c.chance(8) {
				out[name] = c.less(v[name])
			}
		}
		return out
	}
	return v
}

// addNear adds confs with addresses that may be a proxy's own admin interface: of which proxies, the proxies differ. It also
// adds those on which the listeners of gateways depend.
func addNear(lists map[resources.Type][]list) {
	near := func(port string) any {
		return map[string]any{"backends": []any{map[string]any{"type": "OpenTelemetry", "openTelemetry": map[string]any{
			"endpoint": "127.0.0.1:" + port}}}}
	}
	for _, conf := range []any{map[string]any{"requestHeadersTimeout": "4s"}, map[string]any{"requestHeadersTimeout": "6s", "maxConnectionDuration": "9s"}} {
		lists[resources.TypeMeshTimeout] = append(lists[resources.TypeMeshTimeout], list{"to", []any{map[string]any{
			"targetRef": map[string]any{"kind": "Mesh"}, "default": map[string]any{"http": conf}}}})
	}
	logs := resources.TypeMeshAccessLog
	lists[logs] = append(lists[logs],
		list{"to", []any{map[string]any{"targetRef": map[string]any{"kind": "Mesh"}, "default": near("9901")}}},
		list{"rules", []any{map[string]any{"default": near("9901")}}})
	lists[resources.TypeMeshTrace] = append(lists[resources.TypeMeshTrace], list{"default", near("9903")})
}
