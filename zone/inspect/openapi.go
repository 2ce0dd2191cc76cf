package inspect

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources/api"
)

// openAPIDocument describes all endpoints, and tests hold their answers against it. What each needs is not in it: that is the table
// of package api.
//
//go:embed openapi.json
var openAPIDocument []byte

// Permission is what an operation of the document needs, under `x-causeway-permission`: a row of the table of package api.
type Permission struct {
	// Verb is empty for everybody who has proven who they are; several have a comma between.
	Verb string `json:"verb,omitempty"`
	// Type is empty for the type that the path or the body names, and Scope then is that type's.
	Type  string       `json:"type,omitempty"`
	Scope access.Scope `json:"scope,omitempty"`
	// JudgedBy is "route", or "thing" where the home of what the request is about decides.
	JudgedBy string   `json:"judgedBy"`
	Servers  []string `json:"servers"`
}

// OpenAPI is the document that `/openapi.json` serves, OpenAPI 3.0 as JSON. The caller must not change it.
func OpenAPI() []byte { return withPermissions() }

// withPermissions lays the table over the document, once. A row that the document does not describe is a mistake of ours, which each test
// finds that starts a server.
var withPermissions = sync.OnceValue(func() []byte {
	var doc map[string]any
	if err := json.Unmarshal(openAPIDocument, &doc); err != nil {
		panic(fmt.Sprintf("openapi.json: %v", err))
	}
	paths, _ := doc["paths"].(map[string]any)
	for _, row := range api.Table() {
		methods, _ := paths[row.Path()].(map[string]any)
		operation, ok := methods[strings.ToLower(row.Method())].(map[string]any)
		if !ok {
			panic("openapi.json does not describe " + row.Pattern)
		}
		operation["x-causeway-permission"] = permissionOf(&row)
	}
	out, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		panic(fmt.Sprintf("openapi.json: %v", err))
	}
	return out
})

func permissionOf(row *api.Row) Permission {
	p := Permission{Verb: row.Verb, Type: row.Type, Scope: row.Scope, JudgedBy: "route"}
	if row.ByThing {
		p.JudgedBy = "thing"
	}
	if row.On&api.OnGlobal != 0 {
		p.Servers = append(p.Servers, api.ModeGlobal)
	}
	if row.On&api.OnZone != 0 {
		p.Servers = append(p.Servers, api.ModeZone)
	}
	return p
}

func openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write(OpenAPI())
	return err
}
