package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
)

var errMoreJSON = errors.New("text follows the JSON value")

// ReadJSON decodes the body of a request into a struct: one JSON object of at most limit bytes, without unknown or
// repeated fields or other spellings. An empty body counts as an empty object. A malformed body is a 400 that names
// field and has the text what, in which %v stands for the reason. For a body that may hold a secret, what omits the
// reason. A body that is too large, or exceeds the number of bodies, gets the error for that. If the body took long,
// the caller is authorized again.
func ReadJSON(r *http.Request, limit int64, field, what string, into any) error {
	err := readJSON(http.MaxBytesReader(nil, r.Body, limit), into)
	if err == nil {
		return again(r.Context())
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

func readJSON(body io.Reader, into any) error {
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := decoder.Token(); err == nil {
		return errMoreJSON
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return checkKeys(raw, reflect.TypeOf(into))
}
