package api

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

var errMoreJSON = errors.New("there is more after the JSON value")

// ReadJSON reads the body of a request into a struct: one JSON object of at most limit bytes, of which every field is known. An empty body is
// an empty object. What is wrong with it is an answer with 400 that names field and says what, in which %v stands for the reason: what
// may hold a secret says none. A body that is too large, or one too many, is answered as that.
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
