package zone_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
)

// variant is a copy of a conf in which a few values are odd, and some are gone. What says to whom the conf applies
// stays.
func variant(conf any, random *rand.Rand) any {
	raw, _ := json.Marshal(conf)
	var out any
	_ = json.Unmarshal(raw, &out)
	for range random.IntN(4) {
		if places := placesIn(out, "", nil); len(places) > 0 {
			places[random.IntN(len(places))](random)
		}
	}
	return out
}

// placesIn returns for each value of a conf what changes it.
func placesIn(at any, name string, places []func(*rand.Rand)) []func(*rand.Rand) {
	switch v := at.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) { // in one order, so that a seed says it all
			if key == "port" && name != "backendRef" || key == "address" || key == "timeout" ||
				key == "initialJitter" || key == "targetRef" || name == "file" && key == "path" {
				continue
			}
			places = append(places, func(random *rand.Rand) {
				if random.IntN(3) == 0 {
					delete(v, key)
				} else {
					v[key] = odd(v[key], random)
				}
			})
			places = placesIn(v[key], key, places)
		}
	case []any:
		for i := range v {
			places = append(places, func(random *rand.Rand) { v[i] = odd(v[i], random) })
			places = placesIn(v[i], name, places)
		}
	}
	return places
}

func odd(v any, random *rand.Rand) any {
	from := oddTexts
	switch v := v.(type) {
	case bool:
		return !v
	case float64:
		from = oddNumbers
	case string:
		if _, err := strconv.ParseFloat(v, 64); err == nil {
			from = oddNumbers
		} else if len(v) > 1 && v[0] >= '0' && v[0] <= '9' && strings.HasSuffix(v, "s") {
			from = oddDurations
		}
	default:
		return v // an object or a list: its members change
	}
	return from[random.IntN(len(from))]
}

// specs returns whole specs of all types of policies, from the confs that the tests of what is enforced have.
func specs(t *testing.T) map[resources.Type][]map[string]any {
	t.Helper()
	dir := t.TempDir()
	read := func(name string, into any) {
		raw, err := os.ReadFile(filepath.Join("xds", "testdata", "enforced", name))
		must(t, err)
		raw = bytes.ReplaceAll(raw, []byte("/tmp"), []byte(dir))
		raw = bytes.ReplaceAll(raw, []byte("7s"), []byte("100ms")) // proxies wait for the first health checks
		must(t, yaml.Unmarshal(raw, into))
	}
	out := map[resources.Type][]map[string]any{}
	confs := map[resources.Type]map[string]any{}
	read("confs.yaml", &confs)
	for typ, lists := range confs {
		for list, items := range lists {
			out[typ] = append(out[typ], map[string]any{list: items})
		}
	}
	for file, list := range map[string]string{"fields.yaml": "to", "received.yaml": "rules"} {
		lists := map[resources.Type]any{}
		read(file, &lists)
		for typ, items := range lists {
			out[typ] = append(out[typ], map[string]any{list: items})
		}
	}
	whole := map[resources.Type][]any{}
	read("whole.yaml", &whole)
	for typ, confs := range whole {
		for _, conf := range confs {
			out[typ] = append(out[typ], map[string]any{"default": conf})
		}
	}
	for _, list := range out { // in one order, so that a seed says it all
		slices.SortFunc(list, func(a, b map[string]any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return out
}
