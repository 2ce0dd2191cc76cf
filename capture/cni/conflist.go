package cni

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/version"
)

// entryOf returns the plugin's entry in a list of plugins.
func entryOf(except []string) ([]byte, error) {
	return json.Marshal(struct {
		Type         string          `json:"type"`
		Capabilities map[string]bool `json:"capabilities"`
		Except       []string        `json:"except,omitempty"`
	}{Name, map[string]bool{capability: true}, except})
}

// spoken returns an error unless the plugin speaks the version of a list. A container runtime takes cniVersion, or the
// newest of cniVersions that it knows.
func spoken(text []byte) error {
	var is map[string]json.RawMessage
	if err := json.Unmarshal(text, &is); err != nil {
		return err
	}
	var one string
	var more []string
	for key, into := range map[string]any{"cniVersion": &one, "cniVersions": &more} {
		if raw, ok := is[key]; !ok {
			continue
		} else if err := json.Unmarshal(raw, into); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	ours := versions.SupportedVersions()
	if !slices.Contains(ours, one) {
		return fmt.Errorf("cniVersion %.20q: %s speaks %s: with another, no pod of this node would start", one, Name, strings.Join(ours, ", "))
	}
	for _, v := range more {
		if !slices.Contains(version.All.SupportedVersions(), v) {
			return fmt.Errorf("cniVersions has %.20q, and %s speaks none after %s", v, Name, ours[len(ours)-1])
		}
	}
	return nil
}

// place is where a plugin's entry is in the text of a list.
type place struct {
	from, to int
	kind     string
}

// places returns the entries of a list of plugins. They are found in the text, so that all else in it stays as it is.
func places(text []byte) ([]place, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("want a JSON object with plugins")
	}
	var out []place
	found := false
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		if key != "plugins" {
			if err := d.Decode(new(json.RawMessage)); err != nil {
				return nil, err
			}
			continue
		}
		if found {
			return nil, errors.New("it has plugins twice")
		}
		found = true
		if out, err = entries(d); err != nil {
			return nil, fmt.Errorf("plugins: %w", err)
		}
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON document")
	}
	if len(out) == 0 {
		return nil, errors.New("it has no plugins")
	}
	return out, nil
}

// entries reads the array of plugins.
func entries(d *json.Decoder) (out []place, err error) {
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, errors.New("want a list")
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		var is struct{ Type string }
		if err := json.Unmarshal(raw, &is); err != nil || is.Type == "" {
			return nil, fmt.Errorf("entry %d has no type", len(out)+1)
		}
		end := int(d.InputOffset())
		out = append(out, place{from: end - len(raw), to: end, kind: is.Type})
	}
	_, err = d.Token()
	return out, err
}

// with returns a list that has the entry: at its end, or unchanged where it already is.
func with(text, entry []byte) ([]byte, error) {
	all, err := places(text)
	if err != nil {
		return nil, err
	}
	if all[0].kind == Name {
		return nil, fmt.Errorf("%s is its first plugin: it comes after the one that makes the network of pods", Name)
	}
	ours := slices.DeleteFunc(slices.Clone(all), func(p place) bool { return p.kind != Name })
	if len(ours) == 1 && bytes.Equal(text[ours[0].from:ours[0].to], entry) {
		return text, nil
	}
	if text, err = without(text); err != nil {
		return nil, err
	}
	if all, err = places(text); err != nil {
		return nil, err
	}
	end := all[len(all)-1].to
	return slices.Concat(text[:end], []byte(",\n"), entry, text[end:]), nil
}

// without returns a list without the entry. What with has added, it removes to the byte.
func without(text []byte) ([]byte, error) {
	all, err := places(text)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(text)
	for i := len(all) - 1; i > 0; i-- { // the first one makes the network
		if all[i].kind == Name {
			out = slices.Delete(out, all[i-1].to, all[i].to)
		}
	}
	return out, nil
}
