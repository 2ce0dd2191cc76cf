package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

type embedded struct {
	E string `json:"e"`
}

// TestReadJSON checks that ReadJSON accepts one object of known fields within the limit, and that errors name the field
// and reveal no secret.
func TestReadJSON(t *testing.T) {
	for body, want := range map[string]int{
		"": 0, "{}": 0, `{"a": "x"}`: 0, `{"a": "x"} `: 0, `{"b": 1}`: 400, `{"a": 1}`: 400, "[]": 400,
		`{"a": "x"} {}`: 400, `{"a": "x"}]`: 400, `{"a": "secret`: 400,
		`{"a": "` + strings.Repeat("x", 100) + `"}`: 413, strings.Repeat(" ", 100): 413, strings.Repeat(`{"a":`, 12): 400,
		`{"a": "x", "a": "y"}`: 400, `{"A": "x"}`: 400, `{"A": "x", "a": "y"}`: 400, `{"a": "x", "\u0061": "y"}`: 400,
		`{"c": [{"d": 1, "D": 2}]}`: 400, `{"c": [{"d": 1}, {"d": 2}]}`: 0, `{"m": {"x": 1, "X": 2}}`: 0,
		`{"m": {"x": 1, "x": 2}}`:            400,
		`{"raw": {"x": [{"y": 1, "y": 2}]}}`: 400, `{"raw": {"x": 1, "X": 2}}`: 0, `{"e": "x"}`: 0, `{"E": "x"}`: 400,
	} {
		for _, what := range []string{"is none: %v", "is none"} {
			var into struct {
				A string `json:"a"`
				C []struct {
					D int `json:"d"`
				} `json:"c"`
				M   map[string]int  `json:"m"`
				Raw json.RawMessage `json:"raw"`
				embedded
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
			if want == 400 && (!errors.As(err, &ours) || ours.InvalidParameters[0].Field != "field" ||
				what == "is none" && ours.InvalidParameters[0].Reason != "is none") {
				t.Errorf("%.20q: %+v", body, err)
			}
		}
	}
}
