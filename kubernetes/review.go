package kubernetes

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

// admissionReview is a request of the API server and its response. Source: admission.k8s.io/v1.
type admissionReview struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	Request    *admissionRequest  `json:"request,omitempty"`
	Response   *admissionResponse `json:"response,omitempty"`
}

type admissionRequest struct {
	UID  string `json:"uid"`
	Kind struct {
		Group string `json:"group"`
		Kind  string `json:"kind"`
	} `json:"kind"`
	SubResource string          `json:"subResource"`
	Name        string          `json:"name"`
	Namespace   string          `json:"namespace"`
	Operation   string          `json:"operation"`
	UserInfo    apiserver.User  `json:"userInfo"`
	Object      json.RawMessage `json:"object"`
	OldObject   json.RawMessage `json:"oldObject"`
	DryRun      bool            `json:"dryRun"`
}

type admissionResponse struct {
	UID       string           `json:"uid"`
	Allowed   bool             `json:"allowed"`
	Status    *admissionStatus `json:"status,omitempty"`
	Warnings  []string         `json:"warnings,omitempty"`
	PatchType string           `json:"patchType,omitempty"`
	Patch     []byte           `json:"patch,omitempty"`
}

// admissionStatus is a refusal, as kubectl shows it.
type admissionStatus struct {
	Status  string           `json:"status"`
	Message string           `json:"message"`
	Reason  string           `json:"reason,omitempty"`
	Code    int              `json:"code"`
	Details admissionDetails `json:"details"`
}

// admissionDetails name the object, and what is wrong with it. kubectl prints both: a folder has many objects.
type admissionDetails struct {
	Group  string           `json:"group,omitempty"`
	Kind   string           `json:"kind,omitempty"`
	Name   string           `json:"name,omitempty"`
	Causes []admissionCause `json:"causes,omitempty"`
}

type admissionCause struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Field   string `json:"field"`
}

// about names the object of a request in the refusal of it. With a name but without causes, kubectl would not print the
// message.
func (r *admissionResponse) about(q *admissionRequest) *admissionResponse {
	if r.Status != nil && len(r.Status.Details.Causes) > 0 {
		r.Status.Details.Group, r.Status.Details.Kind, r.Status.Details.Name = q.Kind.Group, q.Kind.Kind, q.Name
	}
	return r
}

// parseReview reads a review.
func parseReview(raw []byte) (*admissionRequest, error) {
	var r admissionReview
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	if r.Request == nil || r.Request.UID == "" {
		return nil, errors.New("it has no request")
	}
	return r.Request, nil
}

// reasons are Kubernetes' terms for the statuses of refusals that do not concern the document.
var reasons = map[int]string{http.StatusForbidden: "Forbidden", http.StatusServiceUnavailable: "ServiceUnavailable"}

// refused returns the response with the reason for a refusal.
func refused(err error) *admissionResponse {
	e := api.Explained(err)
	s := &admissionStatus{Status: "Failure", Message: explained(err), Reason: "Invalid", Code: e.Status}
	if s.Code == http.StatusBadRequest || s.Code == http.StatusMethodNotAllowed {
		s.Code = http.StatusUnprocessableEntity
	} else {
		s.Reason = reasons[s.Code]
	}
	for _, p := range e.InvalidParameters {
		s.Details.Causes = append(s.Details.Causes, admissionCause{Reason: "FieldValueInvalid", Message: p.Reason, Field: p.Field})
	}
	return &admissionResponse{Status: s}
}

// maxWarning is the length at which Kubernetes cuts a warning.
const maxWarning = 250

// oneLine formats a text that kubectl shows as one warning.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxWarning {
		text = strings.ToValidUTF8(text[:maxWarning-3], "") + "..."
	}
	return text
}
