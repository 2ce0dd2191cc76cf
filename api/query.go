package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// dryRunQuery asks a write for a preview.
const dryRunQuery = "dryRun"

// filterQuery begins the parameters that select list items by label.
const filterQuery = "filter"

// Parameters returns the names of the query parameters that requests of the row may have. The caller owns the slice.
func (row *Row) Parameters() []string {
	var out []string
	if row.Query != "" {
		out = strings.Split(row.Query, ",")
	}
	if row.Method() == http.MethodGet {
		out = append(out, revisionQuery)
	}
	return out
}

// mayBeEmpty reports whether an empty value of a parameter means something: what is in no namespace, or a label without a
// value.
func (row *Row) mayBeEmpty(key string) bool {
	return key == inNamespace && !row.EveryNamespace || strings.HasPrefix(key, filterQuery+"[")
}

// checkParameter refuses a query parameter that the route does not use. Ignoring it would do something else than the
// caller requested: `dry_run=server` would write, and `namspace=payments` would list everything.
func (row *Row) checkParameter(key string) error {
	known, name := row.Parameters(), key
	switch {
	case strings.HasPrefix(key, filterQuery+"["):
		name = filterQuery
	case key == filterQuery && slices.Contains(known, key):
		return BadField(key, "want %s[labels.KEY]=VALUE", filterQuery)
	}
	switch {
	case slices.Contains(known, name):
		return nil
	case strings.EqualFold(strings.NewReplacer("_", "", "-", "").Replace(name), dryRunQuery) &&
		!slices.Contains(known, dryRunQuery):
		return BadField(key, "this request has no dry run: leave it out")
	case len(known) == 0:
		return BadField(key, "this request takes no query parameters: leave it out")
	}
	return BadField(key, "this request takes no query parameter %q%s", cut(key), resources.Suggestion(name, known))
}
