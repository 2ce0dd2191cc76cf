package api

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestEmptyParametersAreRefused gives each parameter of each route no value, as a script does that has lost it: the answer
// would be about more than was meant, such as `?mesh=` about all meshes. It is refused by name, or means something: what is
// in no namespace, and a label without a value.
func TestEmptyParametersAreRefused(t *testing.T) {
	everyNamespace := map[string]bool{"GET /_audit": true, "GET /meshes/{mesh}/_access": true}
	seen := 0
	for i := range rows {
		row := &rows[i]
		if row.Pattern == "" {
			continue
		}
		for _, parameter := range row.Parameters() {
			means := parameter == filterQuery || parameter == inNamespace && !everyNamespace[row.Pattern]
			if parameter == filterQuery {
				parameter = "filter[labels.team]"
			}
			for _, form := range []string{parameter + "=", parameter} {
				seen++
				r := httptest.NewRequest(row.Method(), "/?"+form, nil)
				for _, part := range row.parts() {
					r.SetPathValue(part, "default")
				}
				var refused *Error
				errors.As(checkNames(r, row), &refused)
				switch {
				case means && refused != nil:
					t.Errorf("%s?%s: %v", row.Pattern, form, refused)
				case !means && (refused == nil || refused.Status != http.StatusBadRequest || refused.InvalidParameters[0].Field != parameter ||
					!strings.Contains(refused.InvalidParameters[0].Reason, "is empty: give it a value, or leave it out")):
					t.Errorf("%s?%s: got %v, want a refusal", row.Pattern, form, refused)
				}
			}
		}
	}
	if seen < 300 {
		t.Errorf("only %d were tried", seen)
	}
}
