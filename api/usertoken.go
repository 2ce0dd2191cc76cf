package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/tokens"
)

// UserTokenRequest is the body of `POST /tokens/user`, in the form of Kuma's HTTP API.
type UserTokenRequest struct {
	// Name is the user's name. It may begin with access.ReservedPrefix only if the caller may do everything.
	Name   string   `json:"name"`
	Groups []string `json:"groups,omitempty"`
	// ValidFor is a Go duration. Default: access.DefaultUserTokenLifetime.
	ValidFor string `json:"validFor,omitempty"`
}

const (
	// maxTokenRequest bounds the body and maxTokenName each name, both in bytes. maxTokenGroups bounds the number of
	// groups.
	maxTokenRequest = 16 << 10
	maxTokenGroups  = 50
	maxTokenName    = 256
)

func readTokenRequest(r *http.Request) (*UserTokenRequest, time.Duration, error) {
	var q UserTokenRequest
	if err := ReadJSON(r, maxTokenRequest, "document", "the body is not a request for a token: %v", &q); err != nil {
		return nil, 0, err
	}
	if q.Name == "" || len(q.Name) > maxTokenName {
		return nil, 0, BadField("name", "want the user's name, of at most %d bytes", maxTokenName)
	}
	if err := CheckText("name", q.Name); err != nil {
		return nil, 0, err
	}
	if len(q.Groups) > maxTokenGroups {
		return nil, 0, BadField("groups", "want at most %d", maxTokenGroups)
	}
	for _, group := range q.Groups {
		if group == "" || len(group) > maxTokenName {
			return nil, 0, BadField("groups", "want names of 1 to %d bytes", maxTokenName)
		}
		if err := CheckText("groups", group); err != nil {
			return nil, 0, err
		}
	}
	lifetime := access.DefaultUserTokenLifetime
	if q.ValidFor != "" {
		var err error
		if lifetime, err = time.ParseDuration(q.ValidFor); err != nil || lifetime < time.Second ||
			lifetime > access.MaxUserTokenLifetime {
			return nil, 0, BadField("validFor", "want a duration from 1s to %s, got %q", access.MaxUserTokenLifetime, q.ValidFor)
		}
	}
	return &q, lifetime, nil
}

// issueUserToken handles `POST /tokens/user` and responds with the token as text. The caller needs the permission for
// the user and for each group, because the holder of the token acts as that user.
func (s *Server) issueUserToken(w http.ResponseWriter, r *http.Request) error {
	q, lifetime, err := readTokenRequest(r)
	if err != nil {
		return err
	}
	if err := s.mayIssue(r, q); err != nil {
		return err
	}
	if s.config.Guard == nil || s.config.Guard.Issuer() == nil {
		return NotFound("issuer of user tokens on this server")
	}
	token, claims, err := s.config.Guard.Issuer().Issue(r.Context(),
		tokens.Claims{Audience: tokens.AudienceUser, Subject: q.Name, Groups: q.Groups}, lifetime)
	if errors.Is(err, tokens.ErrClaims) {
		return BadField("name", "%v", err)
	}
	if err != nil {
		return err
	}
	access.Note(r.Context(), "tokenId", claims.ID)
	access.Note(r.Context(), "expires", claims.Expires.UTC().Format(time.RFC3339))
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err = w.Write([]byte(token)) //nolint:gosec // a token that was signed here, as plain text that no browser sniffs
	return err
}

func (s *Server) mayIssue(r *http.Request, q *UserTokenRequest) error {
	needed := []access.Action{}
	everything := access.Action{Verb: resources.AccessAny, Type: resources.AccessAny}
	for _, group := range q.Groups {
		needed = append(needed, access.About(resources.VerbIssue, resources.AccessUserGroup, "", "", group))
		if access.Reserved(group) {
			needed = append(needed, everything)
		}
	}
	if access.Reserved(q.Name) {
		needed = append(needed, everything)
	}
	// The last one is the subject of the audit line.
	for _, a := range append(needed, access.About(resources.VerbIssue, resources.AccessUserToken, "", "", q.Name)) {
		if err := s.Authorize(r, a); err != nil {
			return err
		}
	}
	return nil
}

// revokeUserToken handles `POST /tokens/user/{id}/_revoke`. The revocation outlasts any token. It also accepts ids that
// were never issued.
func (s *Server) revokeUserToken(w http.ResponseWriter, r *http.Request) error {
	if s.config.Guard == nil || s.config.Guard.Issuer() == nil {
		return NotFound("issuer of user tokens on this server")
	}
	err := s.config.Guard.Issuer().Revoke(r.Context(), r.PathValue("id"), s.config.Now().Add(access.MaxUserTokenLifetime))
	if errors.Is(err, tokens.ErrClaims) {
		return BadField("id", "%v", err)
	}
	if err != nil {
		return err
	}
	return writeRaw(w, []byte("{}"))
}

// revokeUserCertificate handles `POST /certificates/user/{serial}/_revoke`. The revocation is permanent. It also
// accepts serial numbers of certificates that the server has never seen. A serial number has one spelling, so that
// roles and the audit log agree on it.
func (s *Server) revokeUserCertificate(w http.ResponseWriter, r *http.Request) error {
	if s.config.Guard == nil || s.config.Guard.Issuer() == nil {
		return NotFound("list of revoked certificates on this server")
	}
	err := s.config.Guard.Issuer().RevokeCertificate(r.Context(), r.PathValue("serial"))
	if errors.Is(err, tokens.ErrClaims) {
		return BadField("serial", "%v", err)
	}
	if err != nil {
		return err
	}
	return writeRaw(w, []byte("{}"))
}
