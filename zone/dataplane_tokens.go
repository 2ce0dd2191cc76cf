package zone

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/tokens"
	"github.com/causeway-mesh/causeway/zone/xds"
)

const (
	// defaultTokenLife and maxTokenLife apply to dataplane tokens. When a token expires, the proxy's traffic continues,
	// but the proxy receives no more changes and no new identity.
	defaultTokenLife = 90 * 24 * time.Hour
	maxTokenLife     = 366 * 24 * time.Hour
	// maxTokenRequest is in bytes.
	maxTokenRequest = 16 << 10
	// maxTokenLabels limits the labels that a token is bound to.
	maxTokenLabels = 32
)

// tokenHandler issues and revokes the tokens with which proxies request their configuration.
type tokenHandler struct {
	store  store.Reader
	issuer *tokens.Issuer
	now    func() time.Time
	// routes authorizes the caller.
	routes *api.Server
}

func (h *tokenHandler) register(routes *api.Server) {
	h.routes = routes
	routes.Handle(api.RouteDataplaneToken, h.issue)
	routes.Handle(api.RouteIngressToken, h.issueForIngress)
	routes.Handle(api.RouteRevokeDataplaneToken, h.revoke)
}

func readBody(r *http.Request, into any) error {
	return api.ReadJSON(r, maxTokenRequest, "body", "want a JSON object: %v", into)
}

// checkTokenRequest rejects names that no Dataplane can have. A name with a slash would name a Dataplane in another namespace.
func checkTokenRequest(q *api.DataplaneTokenRequest) error {
	switch {
	case q.Dataplane == "" && q.Workload == "" && len(q.Labels) == 0:
		return api.BadField("dataplane", "name the owner of the token: dataplane, workload, labels, or several of them")
	case len(q.Labels) > maxTokenLabels:
		return api.BadField("labels", "has %d labels, want at most %d", len(q.Labels), maxTokenLabels)
	}
	for field, name := range map[string]string{"dataplane": q.Dataplane, "workload": q.Workload} {
		if name == "" {
			continue
		}
		if err := api.CheckName(field, "", name); err != nil {
			return err
		}
	}
	for key, value := range q.Labels {
		if !resources.IsLabel(key, value) {
			return api.BadField("labels", "%q: %q is not a label", key, value)
		}
	}
	return nil
}

// issue serves POST /meshes/{mesh}/_dataplane-tokens. It authorizes the caller for the namespace of the Dataplanes that
// the token is valid for.
func (h *tokenHandler) issue(w http.ResponseWriter, r *http.Request) error {
	var request api.DataplaneTokenRequest
	if err := readBody(r, &request); err != nil {
		return err
	}
	if err := checkTokenRequest(&request); err != nil {
		return err
	}
	namespace := r.URL.Query().Get("namespace")
	err := h.routes.Authorize(r, access.About(resources.VerbIssue, resources.AccessDataplaneToken, r.PathValue("mesh"),
		namespace, request.Dataplane))
	if err != nil {
		return err
	}
	mesh := resources.Key{Type: resources.TypeMesh, Name: r.PathValue("mesh")}
	if h.store.Snapshot().Get(mesh) == nil {
		return api.NotFound(mesh.String())
	}
	claims := tokens.Claims{Audience: tokens.AudienceDataplane, Mesh: mesh.Name, Workload: request.Workload,
		Labels: request.Labels}
	claims.Subject = request.Workload
	if label, ok := request.Labels[resources.LabelNamespace]; ok && label != namespace {
		return api.BadField("labels", "name the namespace %q: name it in the query, ?namespace=", label)
	}
	switch {
	case request.Dataplane != "":
		claims.Dataplane = xds.QualifiedName(resources.Key{Namespace: namespace, Name: request.Dataplane})
		claims.Subject = claims.Dataplane
	case namespace != "":
		claims.Labels = map[string]string{resources.LabelNamespace: namespace}
		maps.Copy(claims.Labels, request.Labels)
	}
	return h.answer(w, r, claims, request.ValidFor)
}

// issueForIngress serves POST /zoneingresses/{name}/_token.
func (h *tokenHandler) issueForIngress(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		ValidFor string `json:"validFor,omitempty"`
	}
	if err := readBody(r, &request); err != nil {
		return err
	}
	claims := tokens.Claims{
		Audience: tokens.AudienceDataplane, Scopes: []string{xds.ScopeZoneIngress}, Dataplane: r.PathValue("name"),
		Subject: r.PathValue("name"),
	}
	return h.answer(w, r, claims, request.ValidFor)
}

func (h *tokenHandler) answer(w http.ResponseWriter, r *http.Request, claims tokens.Claims, validFor string) error {
	life := defaultTokenLife
	if validFor != "" {
		var err error
		if life, err = time.ParseDuration(validFor); err != nil || life < time.Second || life > maxTokenLife {
			return api.BadField("validFor", "%q: want a duration from 1s to %s, such as 720h", validFor, maxTokenLife)
		}
	}
	token, issued, err := h.issuer.Issue(r.Context(), claims, life)
	if errors.Is(err, tokens.ErrClaims) {
		return api.BadField("labels", "%v", err)
	}
	if err != nil {
		return fmt.Errorf("dataplane token: %w", err)
	}
	access.Note(r.Context(), "tokenId", issued.ID)
	access.Note(r.Context(), "subject", issued.Subject)
	w.Header().Set("Cache-Control", "no-store")
	return api.WriteJSON(w, http.StatusOK, api.DataplaneToken{Token: token, ID: issued.ID, Expires: issued.Expires.UTC()})
}

// revoke serves POST /_dataplane-tokens/_revoke. Streams that were opened with the token end.
func (h *tokenHandler) revoke(w http.ResponseWriter, r *http.Request) error {
	var request api.DataplaneTokenRevocation
	if err := readBody(r, &request); err != nil {
		return err
	}
	err := h.issuer.Revoke(r.Context(), request.ID, h.now().Add(maxTokenLife))
	switch {
	case errors.Is(err, tokens.ErrClaims):
		return api.BadField("id", "want the token's ID, its claim jti")
	case errors.Is(err, tokens.ErrFull):
		return api.NewError(http.StatusConflict, "Conflict", err.Error())
	case err != nil:
		return fmt.Errorf("revoke a dataplane token: %w", err)
	}
	access.Note(r.Context(), "tokenId", request.ID)
	return api.WriteJSON(w, http.StatusOK, map[string]string{"id": request.ID})
}
