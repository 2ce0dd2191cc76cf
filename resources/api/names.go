package api

import (
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/causeway-mesh/causeway/resources"
)

// noMesh stands in a path for the mesh of types that belong to none.
const noMesh = "-"

// checkNames refuses what no name can be, in the path and the query of a request, before anybody looks for it or judges it. A query
// parameter is there once: two readers of it could take different ones.
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
	for key, values := range query {
		if len(values) > 1 && key != "tag" && key != revisionQuery {
			return BadField(key, "is there %d times: give it once", len(values))
		}
		switch key {
		case "namespace", "mesh", "zone", "dataplane":
			if values[0] == "" {
				continue // as if it were not there
			}
			if err := CheckName(key, key, values[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

// parts are the names of the path's wildcards that hold names.
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
		if resources.IsMeshName(value) { // a Mesh of a peer
			return nil
		}
		if row.Verb == read && row.ByThing && isKRI(value) {
			return CheckText(part, value)
		}
		return CheckName(part, part, value)
	}
	return CheckText(part, value)
}

// CheckName refuses what cannot be a name of a kind: "mesh", "namespace", "zone", and a resource's for any other. field is what the
// request calls it. Whatever a request names is held to it where it comes in.
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

// maxWord bounds what stands for a key, an inbound or a user, in bytes.
const maxWord = 256

// CheckText refuses what is too long, or cannot be printed.
func CheckText(field, value string) error {
	if len(value) > maxWord*2 || !utf8.ValidString(value) || strings.ContainsFunc(value, func(c rune) bool { return !unicode.IsPrint(c) }) {
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
