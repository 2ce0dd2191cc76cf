package global

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/tokens"
)

// States of a key.
const (
	keySigning  = "signing"
	keyAccepted = "accepted"
)

// keyring holds the keys of one purpose.
type keyring interface {
	keys(ctx context.Context) ([]api.SigningKey, error)
	// rotate creates a key, which signs from now on, and returns its ID.
	rotate(ctx context.Context) (id string, err error)
	// retire stops accepting a key. Its errors are those that keyError handles.
	retire(ctx context.Context, id string, force bool) error
}

// keyrings serves the keys of all purposes.
type keyrings map[string]keyring

func (k keyrings) register(routes *api.Server) {
	routes.Handle(api.RouteKeys, k.list)
	routes.Handle(api.RouteRotateKey, k.rotate)
	routes.Handle(api.RouteRetireKey, k.retire)
}

func (k keyrings) list(w http.ResponseWriter, r *http.Request) error {
	return k.answer(w, r, "", "")
}

// answer writes the keys of a purpose, or of all.
func (k keyrings) answer(w http.ResponseWriter, r *http.Request, purpose, made string) error {
	out := api.SigningKeyList{New: made, Keys: []api.SigningKey{}}
	var purposes []string
	for p := range k {
		if purpose == "" || p == purpose {
			purposes = append(purposes, p)
		}
	}
	slices.Sort(purposes)
	for _, p := range purposes {
		keys, err := k[p].keys(r.Context())
		if err != nil {
			return err
		}
		out.Keys = append(out.Keys, keys...)
	}
	return api.WriteJSON(w, http.StatusOK, out)
}

func (k keyrings) rotate(w http.ResponseWriter, r *http.Request) error {
	purpose := r.PathValue("purpose")
	if strings.HasPrefix(purpose, identityPurpose) {
		return ofAZone(purpose, r.URL.Query().Get("zone"))
	}
	if zone := r.URL.Query().Get("zone"); zone != "" {
		return api.NewError(http.StatusConflict, "Conflict", "this is the global: ask the HTTP API of "+zone)
	}
	ring, ok := k[purpose]
	if !ok {
		return api.NotFound("keys for " + purpose)
	}
	id, err := ring.rotate(r.Context())
	if err != nil {
		return keyError(err)
	}
	return k.answer(w, r, r.PathValue("purpose"), id)
}

// identityPurpose is the prefix of the purposes of identity authorities.
const identityPurpose = "identity:"

// ofAZone returns the error for identity authorities. Each zone has its own, and the global, which has none of their
// keys, cannot make a zone replace them.
func ofAZone(purpose, zone string) error {
	if zone == "" {
		zone = "the zone"
	}
	return api.NewError(http.StatusConflict, "Conflict",
		fmt.Sprintf("the authorities of identities belong to the zones, and only a zone replaces its own: causewayctl keys rotate %s --address with the HTTP API of %s", purpose, zone))
}

func (k keyrings) retire(w http.ResponseWriter, r *http.Request) error {
	ring, ok := k[r.PathValue("purpose")]
	if !ok {
		return api.NotFound("keys for " + r.PathValue("purpose"))
	}
	var body struct {
		Force bool `json:"force"`
	}
	if err := readBody(r, &body); err != nil {
		return err
	}
	if err := ring.retire(r.Context(), r.PathValue("id"), body.Force); err != nil {
		return keyError(err)
	}
	return k.answer(w, r, r.PathValue("purpose"), "")
}

func keyError(err error) error {
	switch {
	case errors.Is(err, enrolment.ErrNoKey), errors.Is(err, tokens.ErrNoKey):
		return api.NewError(http.StatusNotFound, "Not Found", err.Error())
	case errors.Is(err, enrolment.ErrKeyring), errors.Is(err, tokens.ErrKey):
		return api.NewError(http.StatusConflict, "Conflict", err.Error())
	}
	return err
}

// maxOrder bounds the body of a request with options only, in bytes.
const maxOrder = 4 << 10

// readBody reads an optional JSON object; unknown fields are refused.
func readBody(r *http.Request, into any) error {
	return api.ReadJSON(r, maxOrder, "body", "is not what is expected here: %v", into)
}

// tokenPurpose is the purpose of the keys that sign tokens.
const tokenPurpose = "token-signing"

// tokenKeys is the keyring of the tokens' issuer.
type tokenKeys struct{ issuer *tokens.Issuer }

func (t tokenKeys) keys(context.Context) ([]api.SigningKey, error) {
	var out []api.SigningKey
	for _, k := range slices.Backward(t.issuer.Keys()) {
		state := keyAccepted
		if k.Signing {
			state = keySigning
		}
		out = append(out, api.SigningKey{Purpose: tokenPurpose, ID: k.ID, State: state, Algorithm: k.Algorithm,
			Created: k.Created.UTC()})
	}
	return out, nil
}

func (t tokenKeys) rotate(ctx context.Context) (string, error) { return t.issuer.Rotate(ctx) }

// retire ignores force, because it is unknown who still holds tokens of a key.
func (t tokenKeys) retire(ctx context.Context, id string, _ bool) error {
	return t.issuer.Retire(ctx, id)
}
