package zone

import (
	"net/http"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// trustHandler reports which trust domains the proxies of a mesh trust, and which MeshTrusts they refuse.
type trustHandler struct {
	store store.Reader
	home  resources.Home
	// routes authorizes the caller.
	routes *api.Server
}

// serve serves GET /meshes/{mesh}/_trust.
func (h *trustHandler) serve(w http.ResponseWriter, r *http.Request) error {
	snap, mesh := h.store.Snapshot(), r.PathValue("mesh")
	if err := h.routes.MissingMesh(r, snap, mesh); err != nil {
		return err
	}
	bundles := identity.BundlesOf(snap, mesh, h.home)
	response := api.Trust{TrustDomains: []api.TrustDomain{}, Refused: []api.RefusedTrust{}}
	for _, d := range bundles.Domains() {
		response.TrustDomains = append(response.TrustDomains,
			api.TrustDomain{Name: d.Name(), Authorities: len(bundles.Certificates(d))})
	}
	reader := h.routes.Reader(r)
	for _, refusal := range bundles.Refused {
		if !reader.May(refusal.Trust) {
			response.LeftOut++
			continue
		}
		response.Refused = append(response.Refused, api.RefusedTrust{
			KRI: resources.KRIOf(refusal.Trust).String(), Name: refusal.Trust.Name, Reason: refusal.Reason.Error(),
		})
	}
	return api.WriteJSON(w, http.StatusOK, response)
}
