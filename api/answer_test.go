package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/printing"
)

// TestAnswersAreText checks that text from other users cannot control the terminal of a caller that uses curl.
func TestAnswersAreText(t *testing.T) {
	w := httptest.NewRecorder()
	if err := api.WriteJSON(w, http.StatusOK, map[string]string{"label": "a\u202eb\u009b2J\x1b"}); err != nil {
		t.Fatal(err)
	}
	if body := w.Body.String(); !printing.Safe(body) {
		t.Errorf("it answers %q", body)
	}
}
