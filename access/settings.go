package access

import (
	"context"
	"crypto/x509"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/tokens"
)

// Settings configure the HTTP API of a server. The zero value suits a server on loopback.
type Settings struct {
	// RequireCredential requires a credential even over loopback.
	RequireCredential bool
	// ClientCAFile is a PEM file of the authorities that sign users' certificates; empty for none.
	ClientCAFile string
	// OIDC is an identity provider whose tokens authenticate users.
	OIDC OIDCSettings
	// AuditFileBytes and AuditFiles limit the audit log, as in LogConfig.
	AuditFileBytes int64
	AuditFiles     int
	// Limits bound the rate of requests.
	Limits Limits
}

// auditDir is the audit log's folder in a server's data directory.
const auditDir = "audit"

// LogPath is the path, in a server's data directory, of an audit log file that exists from the first start on. A data
// directory that contains it has been used.
const LogPath = auditDir + "/" + intentsFile

// Parts holds what a Guard needs besides Settings.
type Parts struct {
	// DataDir holds the audit log. Required, like Store and Log.
	DataDir string
	Store   store.Reader
	// Issuer issues and verifies user tokens; nil if the server has none.
	Issuer *tokens.Issuer
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	Log *slog.Logger
}

// Open creates the guard of a server and opens its audit log, Guard.Audit, which the caller closes.
func Open(ctx context.Context, s Settings, p Parts) (*Guard, error) {
	c := Config{Store: p.Store, Issuer: p.Issuer, LocalAdmin: !s.RequireCredential, Limits: s.Limits,
		Now: p.Now, Log: p.Log}
	if s.ClientCAFile != "" {
		pool, err := credential.Pool("--api-client-ca", s.ClientCAFile)
		if err != nil {
			return nil, err
		}
		c.ClientCAs = pool
	}
	if s.OIDC.Issuer != "" {
		provider, err := newOIDC(ctx, s.OIDC, p.Now)
		if err != nil {
			return nil, err
		}
		c.OIDC, c.OIDCIssuer = provider, s.OIDC.Issuer
	}
	audit, err := OpenLog(LogConfig{Dir: filepath.Join(p.DataDir, auditDir), MaxFileBytes: s.AuditFileBytes,
		MaxFiles: s.AuditFiles, Now: p.Now})
	if err != nil {
		return nil, err
	}
	c.Audit = audit
	return NewGuard(c), nil
}

// ClientCAs returns the authorities of users' certificates, for a server to name in its handshakes, or nil.
func (g *Guard) ClientCAs() *x509.CertPool { return g.config.ClientCAs }
