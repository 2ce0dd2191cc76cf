package access

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/tokens"
)

// Lifetimes of user tokens. A lost token works for anyone until it expires or is revoked.
const (
	DefaultUserTokenLifetime = 30 * 24 * time.Hour
	MaxUserTokenLifetime     = 366 * 24 * time.Hour
)

// userOf returns the subject of a user token of this server. Errors are *LoginError.
func userOf(issuer *tokens.Issuer, token string) (Subject, error) {
	claims, err := issuer.Verify(token, tokens.AudienceUser)
	if err == nil && claims.Subject == "" {
		err = errors.New("the token names no user")
	}
	if err != nil {
		refused := &LoginError{Method: ByToken, Reason: err.Error(), Hint: "the token is not valid here"}
		if tokens.OfTime(err) {
			refused.Hint = err.Error() + ": compare it with yours, and that of the server that issued the token"
		}
		return Subject{}, refused
	}
	return Subject{Name: claims.Subject, Groups: append(claims.Groups, AuthenticatedGroup), Method: ByToken,
		Credential: claims.ID}, nil
}

// adminTokenFile holds a token of AdminUser, in a server's data directory.
const adminTokenFile = "admin.token"

// EnsureAdminToken keeps a valid token of AdminUser in a file of dir that only the server's user can read, and returns
// the file's path. The first admin uses it if loopback is not open. It replaces a token that expires within a month, or
// was revoked.
func (g *Guard) EnsureAdminToken(ctx context.Context, dir string) (path string, err error) {
	issuer := g.config.Issuer
	if issuer == nil {
		return "", nil
	}
	path = filepath.Join(dir, adminTokenFile)
	raw, err := credential.Own(adminTokenFile, path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("token of the first admin: %w", err)
	}
	claims, err := issuer.Verify(strings.TrimSpace(string(raw)), tokens.AudienceUser)
	if err == nil && claims.Expires.Sub(g.config.Now()) > DefaultUserTokenLifetime {
		return path, nil
	}
	token, issued, err := issuer.Issue(ctx, tokens.Claims{Audience: tokens.AudienceUser, Subject: AdminUser,
		Groups: []string{AdminGroup}}, MaxUserTokenLifetime)
	if err != nil {
		return "", fmt.Errorf("token of the first admin: %w", err)
	}
	entry := Entry{Event: EventIssue, Outcome: Done, User: AdminUser, Verb: "issue", Type: "UserToken", Name: AdminUser,
		Details: map[string]string{"tokenId": issued.ID, "file": adminTokenFile,
			"expires": issued.Expires.UTC().Format(time.RFC3339)}}
	if err := g.config.Audit.Record(ctx, entry); err != nil {
		return "", err
	}
	return path, server.WriteFile(path, []byte(token+"\n"), 0o600)
}
