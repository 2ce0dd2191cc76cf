package api

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/causeway-mesh/causeway/resources"
)

// noMesh is the mesh in paths of types that belong to no mesh.
const noMesh = "-"

// checkNames refuses invalid names in the path and the query of a request, before any lookup or access decision, and
// query parameters that the route does not use. Parameters other than tag and revision must not be repeated, because
// two readers could use different values. An empty parameter is refused: what narrows a change, such as the mark of held
// deletions, or an answer, such as its mesh, must not widen it where a script had no value for it. Only where it means
// something is an empty one taken (Row.mayBeEmpty).
func checkNames(r *http.Request, row *Row) error {
	for _, part := range row.parts() {
		if err := checkPart(row, part, r.PathValue(part)); err != nil {
			return err
		}
	}
	if r.URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return BadField("query", "is not well formed: %v", err)
	}
	for _, key := range slices.Sorted(maps.Keys(query)) {
		values := query[key]
		if err := row.checkParameter(key); err != nil {
			return err
		}
		if len(values) > 1 && key != "tag" && key != revisionQuery {
			return BadField(key, "appears %d times: give it once", len(values))
		}
		if values[0] == "" {
			if row.mayBeEmpty(key) {
				continue
			}
			return BadField(key, "is empty: give it a value, or leave it out")
		}
		switch key {
		case "namespace", "mesh", "zone", "dataplane":
			if err := CheckName(key, key, values[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

// parts returns the wildcards of the path that hold names.
func (row *Row) parts() []string {
	var out []string
	for part := range strings.SplitSeq(row.Path(), "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			out = append(out, strings.TrimSuffix(name, "}"))
		}
	}
	return out
}

func checkPart(row *Row, part, value string) error {
	switch part {
	case "mesh":
		if value == noMesh {
			return nil
		}
		return CheckName(part, part, value)
	case "name":
		if row.Type == zoneType {
			return CheckName(part, "zone", value)
		}
		if resources.IsMeshName(value) { // a Mesh from a peer
			return nil
		}
		if (row.Verb == read || row.Verb == resources.VerbObserve) && row.ByThing && isKRI(value) {
			return CheckText(part, value)
		}
		return CheckName(part, part, value)
	}
	return CheckText(part, value)
}

// CheckName refuses an invalid name of a kind: "mesh", "namespace", "zone", and for any other kind the name of a
// resource. field is the request's name for it. All names in requests are checked on arrival.
func CheckName(field, kind, value string) error {
	switch kind {
	case "mesh":
		if !resources.IsMeshName(value) {
			return BadField(field, "%q is not the name of a mesh: want %s", cut(value), resources.WantNamespace)
		}
	case "namespace", "zone":
		if !resources.IsNamespaceName(value) {
			return BadField(field, "%q is not the name of a %s: want %s", cut(value), kind, resources.WantNamespace)
		}
	default:
		if !resources.IsName(value) {
			return BadField(field, "%q is not a name: want %s", cut(value), resources.WantName)
		}
	}
	return nil
}

// maxWord bounds the text that names a key, an inbound or a user, in bytes.
const maxWord = 256

// CheckText refuses text that is too long or unprintable.
func CheckText(field, value string) error {
	if len(value) > maxWord*2 || !utf8.ValidString(value) ||
		strings.ContainsFunc(value, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return BadField(field, "%q is too long, or cannot be printed", cut(value))
	}
	return nil
}

func cut(s string) string {
	if len(s) > maxWord {
		return s[:maxWord] + "..."
	}
	return s
}
