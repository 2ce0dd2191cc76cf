package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

const (
	// largeBody is where a body begins to cost memory: reading it takes about a hundred times its size.
	largeBody = 256 << 10
	// maxLargeBodies bounds how many of them are read at a time; others wait.
	maxLargeBodies = 2
)

// readDocuments reads a body of at most resources.MaxDocumentBytes, JSON or YAML by its content type.
func (s *Server) readDocuments(w http.ResponseWriter, r *http.Request) ([]*resources.Resource, error) {
	format, err := bodyFormat(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	body := http.MaxBytesReader(w, r.Body, resources.MaxDocumentBytes)
	if r.ContentLength > resources.MaxDocumentBytes {
		return nil, &http.MaxBytesError{Limit: resources.MaxDocumentBytes}
	}
	raw, err := readAll(body, r.ContentLength)
	if err != nil {
		return nil, err
	}
	if len(raw) > largeBody {
		select {
		case s.large <- struct{}{}:
			defer func() { <-s.large }()
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	docs, err := resources.DecodeDocuments(raw, resources.DecodeOptions{Format: format})
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return nil, BadField("document", "the body holds no resource")
	}
	return docs, nil
}

// readAll is io.ReadAll with room made at once where the length is known.
func readAll(r io.Reader, length int64) ([]byte, error) {
	if length <= 0 {
		return io.ReadAll(r)
	}
	raw := make([]byte, length)
	n, err := io.ReadFull(r, raw)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = BadField("document", "the body ends after %d of %d bytes", n, length)
	}
	return raw[:n], err
}

func bodyFormat(contentType string) (resources.Format, error) {
	media, _, err := mime.ParseMediaType(contentType)
	if err == nil {
		switch strings.ToLower(media) {
		case "application/json":
			return resources.FormatJSON, nil
		case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml":
			return resources.FormatYAML, nil
		}
	}
	return 0, NewError(http.StatusUnsupportedMediaType, "Unsupported Media Type",
		"send the header Content-Type: application/json or application/yaml, and a body of that kind").
		WithField("Content-Type", "want application/json or application/yaml, got %q", contentType)
}
