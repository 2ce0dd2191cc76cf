package inspect

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/explain"
)

// maxQueryBytes limits the body of a question.
const maxQueryBytes = 64 << 10

// RegisterPermissions adds the permission endpoints to a server's API: `_explain` and `_lint`.
func RegisterPermissions(server *api.Server, reader store.Reader, options explain.Options) {
	p := &permissions{reader: reader, options: options, server: server}
	server.Handle(api.RouteExplain, p.explain)
	server.Handle(api.RouteExplainAtDataplane, p.explainAt(resources.TypeDataplane))
	server.Handle(api.RouteExplainAtService, p.explainAt(resources.TypeMeshService))
	server.Handle(api.RouteLint, p.lint)
}

type permissions struct {
	reader  store.Reader
	options explain.Options
	// server authorises the caller.
	server *api.Server
}

// explain reads the whole question from the body.
func (p *permissions) explain(w http.ResponseWriter, r *http.Request) error {
	return p.answer(w, r, func(*explain.Query) {})
}

// explainAt takes the destination from the path, and its zone and namespace from the query.
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
	if err := api.ReadJSON(r, maxQueryBytes, "document", "is not a question: %v", &q); err != nil {
		return err
	}
	fill(&q)
	if err := checkQuestion(&q, r.PathValue("mesh")); err != nil {
		return err
	}
	state := p.reader.Snapshot()
	answer, err := p.world(r, state).Explain(q)
	if err != nil {
		return p.refusal(r, state, &q, err)
	}
	return api.WriteLongJSON(w, answer)
}

// world returns the resources that the caller may ask about.
func (p *permissions) world(r *http.Request, state store.Snapshot) *explain.World {
	world := explain.FromSnapshot(state, p.options)
	if reader := p.server.Reader(r); reader != nil {
		world.ForReader(reader.May)
	}
	return world
}

// checkQuestion validates the names in a question. It also checks and sets the mesh, which is that of the path.
func checkQuestion(q *explain.Query, mesh string) error {
	if q.Mesh != "" && q.Mesh != mesh {
		return api.BadField("mesh", "is %q here and %q in the path: ask there", q.Mesh, mesh)
	}
	q.Mesh = mesh
	for kind, name := range map[string]string{"namespace": q.Namespace, "zone": q.Zone} {
		if name == "" {
			continue
		}
		if err := api.CheckName(kind, kind, name); err != nil {
			return err
		}
	}
	if err := api.CheckText("to", q.To); err != nil {
		return err
	}
	if kri, err := resources.ParseKRI(q.To); err == nil && kri.Mesh != mesh {
		return api.BadField("to", "is in the mesh %q, and the path names %q: ask there", kri.Mesh, mesh)
	}
	return nil
}

// refusal returns the error for a question without an answer. Only a caller that might read the missing resource learns
// that it does not exist, and which names are similar.
func (p *permissions) refusal(r *http.Request, state store.Snapshot, q *explain.Query, err error) error {
	var bad *explain.QueryError
	if !errors.As(err, &bad) || !bad.NotFound || bad.Field != "to" {
		return queryError(err, "")
	}
	asked := access.About(resources.VerbRead, string(resources.TypeDataplane), q.Mesh, q.Namespace, q.To)
	kinds, name := []resources.Type{resources.TypeDataplane, resources.TypeMeshService}, q.To
	if kri, notKRI := resources.ParseKRI(q.To); notKRI == nil {
		asked, name = access.OnKRI(resources.VerbRead, kri), kri.Name
		kinds = []resources.Type{resources.Type(asked.Type)}
	} else if q.Kind != "" {
		asked.Type, kinds = string(q.Kind), []resources.Type{q.Kind}
	}
	if denied := p.server.Authorize(r, asked); denied != nil {
		return denied
	}
	if missing := p.server.MissingMesh(r, state, q.Mesh); missing != nil {
		return missing
	}
	if strings.Contains(q.To, "=") {
		return queryError(err, "") // labels
	}
	keys := make([]resources.Key, len(kinds))
	for i, kind := range kinds {
		keys[i] = resources.Key{Type: kind, Mesh: q.Mesh, Namespace: q.Namespace, Name: name}
	}
	return queryError(err, p.server.Nearest(r, state, keys...))
}

// queryError returns the error for a question without an answer. nearest is the end of a 404.
func queryError(err error, nearest string) error {
	var q *explain.QueryError
	switch {
	case !errors.As(err, &q):
		return err
	case q.NotFound:
		return api.NewError(http.StatusNotFound, "Could not retrieve a resource",
			"Not found: "+q.Reason+nearest).WithField(q.Field, "%s", q.Reason)
	}
	return api.NewError(http.StatusBadRequest, "Bad Request", "The question cannot be answered").WithField(q.Field,
		"%s", q.Reason)
}

// Findings is the answer to `_lint`.
type Findings struct {
	Findings []explain.Finding `json:"findings"`
	// LeftOut counts the findings about resources that the caller may not read.
	LeftOut int `json:"leftOut,omitempty"`
}

func (p *permissions) lint(w http.ResponseWriter, r *http.Request) error {
	state := p.reader.Snapshot()
	if err := p.server.MissingMesh(r, state, r.PathValue("mesh")); err != nil {
		return err
	}
	findings, leftOut, err := p.world(r, state).LintShown(r.Context(), r.PathValue("mesh"))
	if err != nil {
		return err
	}
	return api.WriteLongJSON(w, Findings{Findings: append([]explain.Finding{}, findings...), LeftOut: leftOut})
}
