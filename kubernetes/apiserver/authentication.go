package apiserver

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
)

// Authenticate asks the API server whose token it is that was made for an audience. ok is false for a token that is not
// valid now, or was not made for that audience. Source: authentication.k8s.io/v1, TokenReview.
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
	// An API server that knows no audiences names none.
	if !s.Authenticated || s.Error != "" || !slices.Contains(s.Audiences, audience) {
		return User{}, false, nil
	}
	return s.User, true, nil
}
