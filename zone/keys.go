package zone

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/tokens"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// The purposes of keys: those of tokens, and for each mesh those of its authorities. The latter are `identity:<mesh>`,
// and `identity:<mesh>:<trust domain>` if a MeshIdentity names another trust domain than the zone's own.
const (
	tokenPurpose    = "token-signing"
	identityPurpose = "identity:"
)

// keyHandler lists, rotates and retires the keys that the zone signs with.
type keyHandler struct {
	zone        string
	store       store.Reader
	issuer      *tokens.Issuer
	authorities *identity.Authorities
	// unaware lists who does not yet trust the authorities of a mesh domain.
	unaware func(ctx context.Context, meshDomain string) identity.Unaware
}

func (h *keyHandler) register(routes *api.Server) {
	routes.Handle(api.RouteKeys, h.list)
	routes.Handle(api.RouteRotateKey, h.rotate)
	routes.Handle(api.RouteImportKey, h.imports)
	routes.Handle(api.RouteRetireKey, h.retire)
}

func (h *keyHandler) list(w http.ResponseWriter, r *http.Request) error {
	return h.answer(r.Context(), w, "", func(string) bool { return true })
}

// rotate makes a new key. A token key signs at once; an authority signs when everyone trusts it.
func (h *keyHandler) rotate(w http.ResponseWriter, r *http.Request) error {
	purpose := r.PathValue("purpose")
	if zone := r.URL.Query().Get("zone"); zone != "" && zone != h.zone {
		return api.NewError(http.StatusConflict, "Conflict", "this is "+h.zone+": ask the HTTP API of "+zone)
	}
	rotate := h.issuer.Rotate
	if meshDomain, ok, err := h.meshDomain(purpose); err != nil {
		return err
	} else if ok {
		rotate = func(ctx context.Context) (string, error) { return h.authorities.Prepare(ctx, meshDomain) }
		var body struct {
			Own bool `json:"own"`
		}
		if err := readBody(r, &body); err != nil {
			return err
		}
		if signing, err := h.authorities.For(meshDomain); err == nil && signing.Provided() && !body.Own {
			return api.NewError(http.StatusConflict, "Conflict",
				"a provided authority signs: provide the next one with causewayctl keys import, or let the zone create its own with --own")
		}
	}
	id, err := rotate(r.Context())
	if err != nil {
		return keyError(err)
	}
	access.Note(r.Context(), "keyId", id)
	return h.answer(r.Context(), w, id, func(p string) bool { return p == purpose })
}

// maxProvision limits a request, in bytes, to much more than a chain and a key need.
const maxProvision = 128 << 10

// imports makes the authority that the operator provides the next one of a mesh. The request's content never appears in
// a log or an answer.
func (h *keyHandler) imports(w http.ResponseWriter, r *http.Request) error {
	purpose := r.PathValue("purpose")
	meshDomain, ok, err := h.meshDomain(purpose)
	switch {
	case err != nil:
		return err
	case !ok:
		return api.NewError(http.StatusConflict, "Conflict",
			"the server creates token keys: causewayctl keys rotate "+tokenPurpose)
	}
	var body struct {
		Certificates    string `json:"certificates"`
		Key             string `json:"key"`
		AllowSelfSigned bool   `json:"allowSelfSigned"`
	}
	const want = `unexpected body: want {"certificates": "<PEM>", "key": "<PEM>"}` // the reason might quote the key
	if err := api.ReadJSON(r, maxProvision, "key", want, &body); err != nil {
		return err
	}
	id, err := h.authorities.Import(r.Context(), meshDomain, &identity.Provision{
		Certificates: []byte(body.Certificates), Key: []byte(body.Key), AllowSelfSigned: body.AllowSelfSigned,
	})
	if err != nil {
		return keyError(err)
	}
	access.Note(r.Context(), "keyId", id)
	return h.answer(r.Context(), w, id, func(p string) bool { return p == purpose })
}

func (h *keyHandler) retire(w http.ResponseWriter, r *http.Request) error {
	purpose, id := r.PathValue("purpose"), r.PathValue("id")
	var body struct {
		Force bool `json:"force"`
	}
	if err := readBody(r, &body); err != nil {
		return err
	}
	meshDomain, ok, err := h.meshDomain(purpose)
	switch {
	case err != nil:
		return err
	case ok:
		err = h.authorities.Retire(r.Context(), meshDomain, id, body.Force)
	default:
		err = h.issuer.Retire(r.Context(), id)
	}
	if err != nil {
		return keyError(err)
	}
	access.Note(r.Context(), "keyId", id)
	return h.answer(r.Context(), w, "", func(p string) bool { return p == purpose })
}

// meshDomain returns the mesh domain whose authorities a purpose names; ok is false for tokens.
func (h *keyHandler) meshDomain(purpose string) (meshDomain string, ok bool, err error) {
	if purpose == tokenPurpose {
		return "", false, nil
	}
	meshDomain, ok = strings.CutPrefix(purpose, identityPurpose)
	mesh := identity.MeshOfDomain(meshDomain)
	if !ok || h.store.Snapshot().Get(resources.Key{Type: resources.TypeMesh, Name: mesh}) == nil ||
		!slices.Contains(h.authorities.MeshDomains(mesh), meshDomain) {
		return "", false, api.NotFound("keys for " + purpose)
	}
	return meshDomain, true, nil
}

func keyError(err error) error {
	switch {
	case errors.Is(err, identity.ErrProvided):
		return api.NewError(http.StatusBadRequest, "Bad Request", err.Error())
	case errors.Is(err, identity.ErrNoAuthority), errors.Is(err, tokens.ErrNoKey):
		return api.NewError(http.StatusNotFound, "Not Found", err.Error())
	case errors.Is(err, identity.ErrRotation), errors.Is(err, tokens.ErrKey):
		return api.NewError(http.StatusConflict, "Conflict", err.Error())
	}
	return err
}

func (h *keyHandler) answer(ctx context.Context, w http.ResponseWriter, made string,
	wanted func(purpose string) bool) error {
	out := api.SigningKeyList{New: made, Keys: []api.SigningKey{}}
	for mesh := range h.store.Snapshot().List(store.Query{Type: resources.TypeMesh}) {
		for _, meshDomain := range h.authorities.MeshDomains(mesh.Name) {
			if !wanted(identityPurpose + meshDomain) {
				continue
			}
			shown, err := h.shown(ctx, meshDomain)
			if err != nil {
				return err
			}
			out.Keys = append(out.Keys, shown...)
		}
	}
	if wanted(tokenPurpose) {
		for _, key := range slices.Backward(h.issuer.Keys()) {
			state := identity.Accepted
			if key.Signing {
				state = identity.Signing
			}
			out.Keys = append(out.Keys, api.SigningKey{Purpose: tokenPurpose, ID: key.ID, State: string(state),
				Algorithm: key.Algorithm, Created: key.Created.UTC()})
		}
	}
	return api.WriteJSON(w, http.StatusOK, out)
}

// shown returns the authorities of a mesh domain, newest first.
func (h *keyHandler) shown(ctx context.Context, meshDomain string) ([]api.SigningKey, error) {
	all, err := h.authorities.All(meshDomain)
	if err != nil {
		return nil, err
	}
	var out []api.SigningKey
	for _, one := range slices.Backward(all) {
		expires := one.Certificate().NotAfter.UTC()
		key := api.SigningKey{
			Purpose: identityPurpose + meshDomain, ID: one.ID(), State: string(one.State()), Algorithm: one.Algorithm(),
			Created: one.Created().UTC(),
			Expires: &expires, Provided: one.Provided(), Unaware: one.Unaware(),
		}
		if one.State() == identity.Next {
			unaware := h.unaware(ctx, meshDomain)
			key.WaitsFor = append(unaware.Waited, unaware.Away...)
		}
		out = append(out, key)
	}
	return out, nil
}
