package zone

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// maxSigningRequest limits a request, in bytes, to much more than a signing request for any accepted key needs.
const maxSigningRequest = 64 << 10

// A proxy needs an identity at half of the previous one's lifetime, and when authorities rotate. Each writes an audit
// line, so a caller in a loop would push out other lines.
const (
	svidEvery = 10 * time.Second
	svidBurst = 50
)

// svidHandler signs identities for programs without a proxy. A caller needs permission to sign for the Dataplane, or
// the Dataplane's own credential: a dataplane token, or its current identity.
type svidHandler struct {
	store       store.Reader
	home        resources.Home
	authorities *identity.Authorities
	admission   *xds.Admission
	// routes authorizes the caller.
	routes *api.Server
	// pace limits requests that use a Dataplane's own credential.
	pace *access.Pace
}

func (h *svidHandler) register(routes *api.Server) {
	h.routes, h.pace = routes, access.NewPace(svidEvery, svidBurst, time.Now)
	routes.HandleProven(api.RouteSVID, h.serve, h.prove)
}

// prove implements access.Proof. The credential only permits signing the identity of that Dataplane.
func (h *svidHandler) prove(r *http.Request) (access.Subject, bool) {
	var chain []*x509.Certificate
	if r.TLS != nil {
		chain = r.TLS.PeerCertificates
	}
	holder, shown := h.admission.HolderOf(r.Header.Get("Authorization"), chain)
	if !shown {
		return access.Subject{}, false
	}
	return access.Subject{
		Name: holder.Name, Method: access.Method(holder.Method), Credential: holder.Credential,
		Only: func(a access.Action) bool {
			return a.Verb == resources.VerbSign && a.Type == string(resources.TypeDataplane) &&
				holder.Is(resources.Key{Type: resources.TypeDataplane, Mesh: a.Mesh, Namespace: a.Namespace, Name: a.Name})
		},
	}, true
}

// serve serves POST /meshes/{mesh}/dataplanes/{name}/_svid.
func (h *svidHandler) serve(w http.ResponseWriter, r *http.Request) error {
	key := resources.Key{
		Type: resources.TypeDataplane, Mesh: r.PathValue("mesh"), Namespace: r.URL.Query().Get("namespace"),
		Name: r.PathValue("name"),
	}
	snap := h.store.Snapshot()
	dp, err := h.routes.Find(r, snap, resources.VerbSign, key)
	denied := (*access.DeniedError)(nil)
	if access.SubjectOf(r.Context()).Only != nil && !errors.As(err, &denied) && !h.pace.Allow(key.String()) {
		return fmt.Errorf("%w: a Dataplane may request %d identities at once, then one in %s", access.ErrTooMany, svidBurst,
			svidEvery)
	}
	if err != nil {
		return err
	}
	var request api.SVIDRequest
	if err := api.ReadJSON(r, maxSigningRequest, "csr",
		`unexpected body: want {"csr": "<PEM>"}: %v`, &request); err != nil {
		return err
	}
	svid, err := h.authorities.Sign(dp, []byte(request.CSR))
	switch {
	case errors.Is(err, identity.ErrRequest):
		return api.BadField("csr", "%v", err)
	case errors.Is(err, identity.ErrSpire):
		return api.NewError(http.StatusConflict, "Conflict", "the zone does not sign for it: "+err.Error())
	case errors.Is(err, identity.ErrIdentity):
		return api.BadField("labels", "%v", err)
	case err != nil:
		return fmt.Errorf("%s: %w", key, err)
	}
	bundles := identity.BundlesOf(snap, key.Mesh, h.home)
	response := api.SVID{
		SpiffeID: svid.ID.String(), Certificate: string(svid.CertificatePEM), Expires: svid.Leaf.NotAfter.UTC(),
		Bundles: map[string]string{},
	}
	for _, domain := range bundles.Domains() {
		response.Bundles[domain.Name()] = string(bundles.PEM(domain))
	}
	return api.WriteJSON(w, http.StatusOK, response)
}
