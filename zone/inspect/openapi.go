package inspect

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
)

// openAPIDocument describes all endpoints; tests check their answers against it. It does not contain the permissions
// that each operation requires: those are in the table of package api.
//
//go:embed openapi.json
var openAPIDocument []byte

// Permission is what an operation of the document requires, under `x-causeway-permission`: a row of the table of
// package api.
type Permission struct {
	// Verb is empty if any authenticated principal may call the operation. Several verbs are separated by commas.
	Verb string `json:"verb,omitempty"`
	// Type is empty if the path or the body names the type; Scope is then that type's.
	Type  string       `json:"type,omitempty"`
	Scope access.Scope `json:"scope,omitempty"`
	// JudgedBy is "route", or "thing" if the home of the resource in question decides.
	JudgedBy string   `json:"judgedBy"`
	Servers  []string `json:"servers"`
}

// OpenAPI returns the document that `/openapi.json` serves, OpenAPI 3.0 as JSON. The caller must not change it.
func OpenAPI() []byte { return withPermissions() }

// withPermissions adds the table to the document, once. A row that the document does not describe is a programming
// error, which every test that starts a server finds.
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
