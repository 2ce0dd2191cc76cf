package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Error is a refusal of the API server.
type Error struct {
	// Code is the HTTP status.
	Code int
	// Reason is a word for programs: NotFound, AlreadyExists, Conflict, Expired. Message is for users.
	Reason, Message string
}

func (e *Error) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the Kubernetes API server answers %d %s", e.Code, e.Reason)) + ": " + strings.TrimSpace(e.Message)
}

// IsNotFound reports whether there is no such object, or no such kind.
func IsNotFound(err error) bool { return codeOf(err) == http.StatusNotFound }

// IsExists reports whether an object of that name already exists.
func IsExists(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == http.StatusConflict && e.Reason == "AlreadyExists"
}

// IsConflict reports whether the object is not, or no longer, the version that the request named.
func IsConflict(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == http.StatusConflict && e.Reason != "AlreadyExists"
}

// IsExpired reports whether the API server no longer has the requested revision.
func IsExpired(err error) bool { return codeOf(err) == http.StatusGone }

// IsRefused reports whether the API server refused the request itself, so that a retry fails again.
func IsRefused(err error) bool {
	code := codeOf(err)
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests &&
		code != http.StatusRequestTimeout
}

func codeOf(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// status is an object of kind Status.
type status struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func errorOf(code int, body []byte) error {
	var s status
	if json.Unmarshal(body, &s) != nil || s.Message == "" {
		s.Message = string(body[:min(len(body), 300)])
	}
	return &Error{Code: code, Reason: s.Reason, Message: s.Message}
}
