package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
)

const (
	// turnBody is the size from which a user's bodies take turns. A thousand short documents are about three times as
	// large.
	turnBody = 32 << 10
	// largeBody is the size from which a body costs notable memory: reading it takes about a hundred times its size.
	largeBody = 256 << 10
	// maxLargeBodies bounds how many large bodies are read at once. Others wait.
	maxLargeBodies = 2
)

// mayWriteHere checks the permission for a write before it reads the body. If the path names one resource, the caller
// needs the permission for that one. Otherwise the caller needs a permission for any.
func (s *Server) mayWriteHere(r *http.Request) error {
	if s.config.Guard == nil {
		return nil
	}
	subject := access.SubjectOf(r.Context())
	if r.PathValue("plural") == "" {
		if s.config.Guard.MayWriteSome(subject) {
			return nil
		}
		return &access.DeniedError{Subject: subject, Missing: access.Action{Verb: resources.VerbCreate,
			Type: resources.AccessAny}}
	}
	d, err := descriptorOf(r)
	if err != nil {
		return err
	}
	key, err := keyOf(r, d)
	if err != nil {
		return err
	}
	verb := resources.VerbCreate
	old := s.config.Store.Snapshot().Get(key)
	if old != nil {
		verb = resources.VerbUpdate
	}
	if needed := access.On(verb, key); !s.config.Guard.Allows(subject, needed) {
		return &access.DeniedError{Subject: subject, Missing: s.unrevealing(subject, needed, old)}
	}
	return nil
}

// readDocuments reads a body of at most resources.MaxDocumentBytes, JSON or YAML by its content type, after it has
// checked that the caller may write what the path names. With lists, the documents may be the items of one list. The
// caller calls done when the documents are stored, and after an error: until then they may hold the user's turn.
func (s *Server) readDocuments(w http.ResponseWriter, r *http.Request, lists bool) (docs []*resources.Resource,
	done func(), err error) {
	done = func() {}
	format, err := bodyFormat(r.Header)
	if err != nil {
		return nil, done, err
	}
	if err := s.mayWriteHere(r); err != nil {
		hangUp(w.Header())
		return nil, done, err
	}
	body := http.MaxBytesReader(w, r.Body, resources.MaxDocumentBytes)
	if r.ContentLength > resources.MaxDocumentBytes {
		return nil, done, &http.MaxBytesError{Limit: resources.MaxDocumentBytes}
	}
	raw, err := readAll(body, r.ContentLength)
	if err != nil {
		return nil, done, err
	}
	if len(raw) > turnBody && !r.URL.Query().Has(dryRunQuery) { // a dry run already has its turn
		turn, err := s.inflight.acquire(r.Context())
		if err != nil {
			return nil, done, err
		}
		done = turn
	}
	docs, err = s.decode(r, raw, resources.DecodeOptions{Format: format, Lists: lists})
	return docs, done, err
}

// decode decodes a body. Large bodies wait for each other.
func (s *Server) decode(r *http.Request, raw []byte, options resources.DecodeOptions) ([]*resources.Resource, error) {
	if len(raw) > largeBody {
		select {
		case s.large <- struct{}{}:
			defer func() { <-s.large }()
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if err := again(r.Context()); err != nil {
		return nil, err
	}
	docs, err := resources.DecodeDocuments(raw, options)
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return nil, BadField("document", "the body has no resource")
	}
	for _, doc := range docs {
		s.config.Home.Place(doc)
	}
	return docs, nil
}

// announcedRoom is the number of bytes allocated up front for a body with a Content-Length. The buffer grows when more
// data has arrived.
const announcedRoom = 64 << 10

// readAll is io.ReadAll that allocates a small known length at once and a large one in steps, so that an announced
// length costs little if the client does not send the data.
func readAll(r io.Reader, length int64) ([]byte, error) {
	if length <= 0 {
		return io.ReadAll(r)
	}
	raw := make([]byte, 0, min(length, announcedRoom))
	for int64(len(raw)) < length {
		if len(raw) == cap(raw) {
			raw = slices.Grow(raw, int(min(length, 4*int64(cap(raw))))-len(raw))
		}
		n, err := r.Read(raw[len(raw):min(int64(cap(raw)), length)])
		raw = raw[:len(raw)+n]
		if errors.Is(err, io.EOF) && int64(len(raw)) < length {
			return nil, BadField("document", "the body ends after %d of %d bytes", len(raw), length)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	return raw, nil
}

// bodyFormat returns the format of a body by its headers. They must be plain and unique: a proxy in front that reads
// another of two headers, or removes an encoding, would have checked another body.
func bodyFormat(h http.Header) (resources.Format, error) {
	contentType := h.Get("Content-Type")
	if n := len(h["Content-Type"]); n > 1 {
		return 0, unsupported("Content-Type", "appears %d times: give it once", n)
	}
	if encoding := h.Values("Content-Encoding"); len(encoding) > 0 && !strings.EqualFold(strings.Join(encoding, ","), "identity") {
		return 0, unsupported("Content-Encoding", "the server reads a body as it comes: send it without %q", cut(strings.Join(encoding, ",")))
	}
	media, parameters, err := mime.ParseMediaType(contentType)
	if charset, given := parameters["charset"]; given && !strings.EqualFold(charset, "utf-8") {
		return 0, unsupported("Content-Type", "a body is UTF-8: leave out charset=%q", cut(charset))
	}
	if err == nil {
		switch strings.ToLower(media) {
		case "application/json":
			return resources.FormatJSON, nil
		case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml":
			return resources.FormatYAML, nil
		}
	}
	return 0, unsupported("Content-Type", "want application/json or application/yaml, got %q", cut(contentType))
}

func unsupported(header, format string, args ...any) error {
	return NewError(http.StatusUnsupportedMediaType, "Unsupported Media Type",
		"send the header Content-Type: application/json or application/yaml, and a body of that kind").WithField(header, format, args...)
}
