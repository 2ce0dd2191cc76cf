package inspect

import (
	_ "embed"
	"net/http"
)

// openAPIDocument describes the endpoints of this package, and tests hold their answers against it.
//
//go:embed openapi.json
var openAPIDocument []byte

// OpenAPI is the document that `/openapi.json` serves, OpenAPI 3.0 as JSON. The caller must not change it.
func OpenAPI() []byte { return openAPIDocument }

func openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write(openAPIDocument)
	return err
}
