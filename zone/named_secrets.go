package zone

import (
	"errors"
	"net/http"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
)

// namedSecrets serves the routes for secrets that users manage.
type namedSecrets struct {
	keeper *secrets.Keeper
	store  store.Reader
	routes *api.Server
}

// register adds the routes with which users manage the secrets that resources of the zone refer to by name. No route
// returns a secret's value.
func (h *namedSecrets) register(routes *api.Server) {
	h.routes = routes
	routes.Handle(api.RouteSecrets, h.list)
	routes.Handle(api.RoutePutSecret, h.put)
	routes.Handle(api.RouteDeleteSecret, h.delete)
}

// list returns the names in the namespace of the query. Permissions apply to that namespace.
func (h *namedSecrets) list(w http.ResponseWriter, r *http.Request) error {
	n, err := h.named(r, resources.VerbRead)
	if err != nil {
		return err
	}
	out := api.NamedSecrets{Items: []api.NamedSecret{}}
	for _, there := range h.keeper.ListNamed(n.Mesh) {
		if there.Namespace == n.Namespace {
			out.Items = append(out.Items, api.NamedSecret(there))
		}
	}
	if err := h.routes.MissingMesh(r, h.store.Snapshot(), n.Mesh); err != nil && len(out.Items) == 0 {
		return err
	}
	return api.WriteJSON(w, http.StatusOK, out)
}

// named returns the secret that a request is about, or, with an empty name, the namespace. It authorizes the caller for
// the verb.
func (h *namedSecrets) named(r *http.Request, verb string) (secrets.Named, error) {
	n := secrets.Named{Mesh: r.PathValue("mesh"), Namespace: r.URL.Query().Get("namespace"), Name: r.PathValue("name")}
	err := h.routes.Authorize(r, access.Action{Verb: verb, Type: resources.AccessSecret, Scope: access.ScopeNamespace,
		Mesh: n.Mesh, Namespace: n.Namespace, Name: n.Name})
	if err != nil {
		return n, err
	}
	if verb != resources.VerbRead && !resources.IsName(n.Name) {
		return n, api.BadField("name", "want lower-case letters, digits, dashes and dots, at most 253, got %q", n.Name)
	}
	if n.Namespace != "" && !resources.IsNamespaceName(n.Namespace) {
		return n, api.BadField("namespace", "want a DNS label, got %q", n.Namespace)
	}
	return n, nil
}

// maxSecretBody is the length of a secret in base64 and its JSON around it, in bytes.
const maxSecretBody = secrets.MaxNamed*4/3 + 1<<10

// put stores a secret. The request's content never appears in a log or an answer.
func (h *namedSecrets) put(w http.ResponseWriter, r *http.Request) error {
	n, err := h.named(r, resources.VerbUpdate)
	if err != nil {
		return err
	}
	if h.store.Snapshot().Get(resources.Key{Type: resources.TypeMesh, Name: n.Mesh}) == nil {
		return api.BadField("mesh", "mesh %q not found", n.Mesh)
	}
	var body api.SecretValue
	const want = `unexpected body: want {"value": "<base64>"}` // the reason might quote the secret
	if err := api.ReadJSON(r, maxSecretBody, "value", want, &body); err != nil {
		return err
	}
	version, err := h.keeper.PutNamed(r.Context(), n, body.Value)
	if err != nil {
		return secretError(err)
	}
	return api.WriteJSON(w, http.StatusOK, struct {
		Revision uint64 `json:"revision"`
	}{version})
}

func (h *namedSecrets) delete(w http.ResponseWriter, r *http.Request) error {
	n, err := h.named(r, resources.VerbDelete)
	if err != nil {
		return err
	}
	if err := h.keeper.DeleteNamed(r.Context(), n); err != nil {
		return secretError(err)
	}
	return api.WriteJSON(w, http.StatusOK, struct{}{})
}

func secretError(err error) error {
	switch {
	case errors.Is(err, secrets.ErrNotFound):
		return api.NewError(http.StatusNotFound, "Not Found", err.Error())
	case errors.Is(err, secrets.ErrLimit):
		return api.BadField("value", "%v", err)
	case errors.Is(err, secrets.ErrChanged):
		return api.NewError(http.StatusConflict, "Conflict", err.Error()+": try again")
	}
	return err
}
