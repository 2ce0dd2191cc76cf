package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Merge lays the values of a file over those of a chart. A value that the chart lacks is an error, which names it.
func Merge(values, over map[string]any, at string) error {
	for _, name := range slices.Sorted(maps.Keys(over)) {
		v := over[name]
		before, ok := values[name]
		if !ok {
			return fmt.Errorf("there is no value %s%s: the chart has %s", at, name, strings.Join(slices.Sorted(maps.Keys(values)), ", "))
		}
		inner, isObject := before.(map[string]any)
		fields, given := v.(map[string]any)
		switch {
		case isObject && len(inner) > 0 && !given:
			return fmt.Errorf("%s%s is an object: set one of its values, as %s%s.%s", at, name, at, name, slices.Sorted(maps.Keys(inner))[0])
		case isObject && len(inner) > 0:
			if err := Merge(inner, fields, at+name+"."); err != nil {
				return err
			}
		default:
			if fmt.Sprintf("%T", before) != fmt.Sprintf("%T", v) {
				return fmt.Errorf("%s%s: want a value like %v, got %v", at, name, shown(before), shown(v))
			}
			values[name] = v
		}
	}
	return nil
}

func shown(v any) string {
	raw, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(string(raw))
}

// Set sets one value: path.of.it=text. The text is parsed as YAML, unless the chart has text there. A list is written
// {a,b}, as for helm.
func Set(values map[string]any, setting string) error {
	at, text, ok := strings.Cut(setting, "=")
	if !ok || at == "" {
		return fmt.Errorf("%q: want NAME=VALUE", setting)
	}
	names := strings.Split(at, ".")
	var v any = text
	if inside, isList := strings.CutPrefix(text, "{"); isList && strings.HasSuffix(inside, "}") {
		v = anys(strings.Split(strings.TrimSuffix(inside, "}"), ","))
	} else if _, isText := find(values, names).(string); !isText {
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	for _, name := range slices.Backward(names) {
		v = map[string]any{name: v}
	}
	return Merge(values, v.(map[string]any), "")
}

func find(values map[string]any, names []string) any {
	var at any = values
	for _, name := range names {
		fields, _ := at.(map[string]any)
		at = fields[name]
	}
	return at
}
