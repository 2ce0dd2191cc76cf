package apiserver

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
)

// Authenticate asks the API server whose token this is, for an audience. ok is false for a token that is not valid now,
// or has another audience. Source: authentication.k8s.io/v1, TokenReview.
func (c *Client) Authenticate(ctx context.Context, token, audience string) (u User, ok bool, err error) {
	body, err := json.Marshal(map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
		"spec": map[string]any{"token": token, "audiences": []string{audience}}})
	if err != nil {
		return User{}, false, err
	}
	raw, err := c.whole(ctx, http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", "application/json", body)
	if err != nil {
		return User{}, false, err
	}
	var review struct {
		Status struct {
			Authenticated bool     `json:"authenticated"`
			User          User     `json:"user"`
			Audiences     []string `json:"audiences"`
			Error         string   `json:"error"`
		} `json:"status"`
	}
	if err := json.Unmarshal(raw, &review); err != nil {
		return User{}, false, err
	}
	s := &review.Status
	// An API server that does not support audiences names none.
	if !s.Authenticated || s.Error != "" || !slices.Contains(s.Audiences, audience) {
		return User{}, false, nil
	}
	return s.User, true, nil
}

// Issuer returns the issuer of the API server's service account tokens, and the keys that verify them, a JSON Web Key
// Set. An API server whose issuer is not an https URL publishes neither. Source: Kubernetes, "Service account issuer
// discovery".
func (c *Client) Issuer(ctx context.Context) (issuer string, keys []byte, err error) {
	raw, err := c.whole(ctx, http.MethodGet, "/.well-known/openid-configuration", "", nil)
	if err != nil {
		return "", nil, err
	}
	var document struct {
		Issuer string `json:"issuer"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return "", nil, err
	}
	keys, err = c.whole(ctx, http.MethodGet, "/openid/v1/jwks", "", nil)
	return document.Issuer, keys, err
}
