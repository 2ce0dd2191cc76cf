package apiserver

import (
	"context"
	"encoding/json"
	"net/http"
)

// User is a caller of the API server, as webhooks see it. Source: authentication.k8s.io/v1, UserInfo.
type User struct {
	Username string              `json:"username"`
	UID      string              `json:"uid,omitempty"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

// Right is a permission on objects. The kind need not exist: roles can name any. Without a namespace it covers the
// whole cluster, without a name all names. Source: authorization.k8s.io/v1, ResourceAttributes.
type Right struct {
	Namespace string `json:"namespace,omitempty"`
	Verb      string `json:"verb"`
	Group     string `json:"group"`
	Resource  string `json:"resource"`
	Name      string `json:"name,omitempty"`
}

// May reports whether the API server says that a user has a right. It is false unless the answer is a clear yes.
func (c *Client) May(ctx context.Context, u User, r Right) (bool, error) {
	type spec struct {
		User       string              `json:"user"`
		UID        string              `json:"uid,omitempty"`
		Groups     []string            `json:"groups,omitempty"`
		Extra      map[string][]string `json:"extra,omitempty"`
		Attributes Right               `json:"resourceAttributes"`
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
		"spec": spec{User: u.Username, UID: u.UID, Groups: u.Groups, Extra: u.Extra, Attributes: r}})
	if err != nil {
		return false, err
	}
	raw, err := c.whole(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", "application/json", body)
	if err != nil {
		return false, err
	}
	var review struct {
		Status struct {
			Allowed bool `json:"allowed"`
			Denied  bool `json:"denied"`
		} `json:"status"`
	}
	err = json.Unmarshal(raw, &review)
	return err == nil && review.Status.Allowed && !review.Status.Denied, err
}
