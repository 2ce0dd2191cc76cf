package api

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestReadJSON checks that ReadJSON accepts one object of known fields within the limit, and that errors name the field
// and reveal no secret.
func TestReadJSON(t *testing.T) {
	for body, want := range map[string]int{
		"": 0, "{}": 0, `{"a": "x"}`: 0, `{"a": "x"} `: 0, `{"b": 1}`: 400, `{"a": 1}`: 400, "[]": 400, `{"a": "x"} {}`: 400, `{"a": "x"}]`: 400, `{"a": "secret`: 400,
		`{"a": "` + strings.Repeat("x", 100) + `"}`: 413, strings.Repeat(" ", 100): 413, strings.Repeat(`{"a":`, 12): 400,
	} {
		for _, what := range []string{"is none: %v", "is none"} {
			var into struct {
				A string `json:"a"`
			}
			err := ReadJSON(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)), 64, "field", what, &into)
			got := 0
			if err != nil {
				got = asError(err).Status
			}
			if got != want {
				t.Errorf("%.20q: %v, want %d", body, err, want)
			}
			var ours *Error
			if want == 400 && (!errors.As(err, &ours) || ours.InvalidParameters[0].Field != "field" || what == "is none" && ours.InvalidParameters[0].Reason != "is none") {
				t.Errorf("%.20q: %+v", body, err)
			}
		}
	}
}
