package api

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

var errMoreJSON = errors.New("there is more after the JSON value")

// ReadJSON decodes the body of a request into a struct: one JSON object of at most limit bytes, without unknown fields.
// An empty body counts as an empty object. A malformed body is a 400 that names field and has the text what, in which
// %v stands for the reason. For a body that may hold a secret, what omits the reason. A body that is too large, or
// exceeds the number of bodies, gets the error for that.
func ReadJSON(r *http.Request, limit int64, field, what string, into any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(nil, r.Body, limit))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err == nil {
			err = errMoreJSON
		}
	}
	var ours *Error
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &ours), errors.As(err, &large):
		return err
	case strings.Contains(what, "%v"):
		return BadField(field, what, err)
	}
	return BadField(field, "%s", what)
}
