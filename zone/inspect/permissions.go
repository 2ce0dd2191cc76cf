package inspect

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/explain"
)

// maxQueryBytes bounds a question.
const maxQueryBytes = 64 << 10

// RegisterPermissions adds the questions about permissions to a server's API: `_explain` and `_lint`.
func RegisterPermissions(server *api.Server, reader store.Reader, options explain.Options) {
	mesh := api.Need{Verb: resources.VerbRead, Type: string(resources.TypeMesh)}
	p := &permissions{reader: reader, options: options}
	server.Handle("POST /meshes/{mesh}/_explain", p.explain, mesh)
	server.Handle("POST /meshes/{mesh}/dataplanes/{name}/_inbounds/{inbound}/_explain", p.explainAt(resources.TypeDataplane), api.Need{Verb: resources.VerbRead, Type: string(resources.TypeDataplane)})
	server.Handle("POST /meshes/{mesh}/meshservices/{name}/_inbounds/{inbound}/_explain", p.explainAt(resources.TypeMeshService), api.Need{Verb: resources.VerbRead, Type: string(resources.TypeMeshService)})
	server.Handle("GET /meshes/{mesh}/_lint", p.lint, mesh)
}

type permissions struct {
	reader  store.Reader
	options explain.Options
}

// explain takes the whole question from the body.
func (p *permissions) explain(w http.ResponseWriter, r *http.Request) error {
	return p.answer(w, r, func(*explain.Query) {})
}

// explainAt takes the destination from the path, and where it is from the query.
func (p *permissions) explainAt(kind resources.Type) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		return p.answer(w, r, func(q *explain.Query) {
			q.To, q.Kind, q.Inbound = r.PathValue("name"), kind, r.PathValue("inbound")
			q.Namespace = cmp.Or(r.URL.Query().Get("namespace"), q.Namespace)
			q.Zone = cmp.Or(r.URL.Query().Get("zone"), q.Zone)
		})
	}
}

func (p *permissions) answer(w http.ResponseWriter, r *http.Request, fill func(*explain.Query)) error {
	var q explain.Query
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxQueryBytes))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&q); err != nil {
		return api.BadField("document", "is not a question: %v", err)
	}
	fill(&q)
	q.Mesh = r.PathValue("mesh")
	answer, err := explain.FromSnapshot(p.reader.Snapshot(), p.options).Explain(q)
	if err != nil {
		return queryError(err)
	}
	return writeJSON(w, answer)
}

func queryError(err error) error {
	var q *explain.QueryError
	switch {
	case !errors.As(err, &q):
		return err
	case q.NotFound:
		return api.NewError(http.StatusNotFound, "Could not retrieve a resource", "Not found: "+q.Reason).WithField(q.Field, "%s", q.Reason)
	}
	return api.NewError(http.StatusBadRequest, "Bad Request", "The question cannot be answered").WithField(q.Field, "%s", q.Reason)
}

// Findings is the answer to `_lint`.
type Findings struct {
	Findings []explain.Finding `json:"findings"`
}

func (p *permissions) lint(w http.ResponseWriter, r *http.Request) error {
	findings := explain.FromSnapshot(p.reader.Snapshot(), p.options).Lint(r.PathValue("mesh"))
	return writeJSON(w, Findings{Findings: append([]explain.Finding{}, findings...)})
}

func writeJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v)
}
