package access

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
)

// ReservedPrefix begins the names of users and groups that only a server assigns. Names with it from identity providers
// and other certificate authorities are refused.
const ReservedPrefix = "mesh-system:"

// Reserved users and groups. Source: Kuma's wire format, "Auth".
const (
	// AdminUser is the caller over loopback without a credential.
	AdminUser = ReservedPrefix + "admin"
	// AdminGroup has the built-in role admin. No binding can give or remove it.
	AdminGroup = ReservedPrefix + "admin"
	// AuthenticatedGroup contains every authenticated caller.
	AuthenticatedGroup = ReservedPrefix + "authenticated"
	// AnonymousUser and AnonymousGroup are for servers that do not authenticate.
	AnonymousUser  = ReservedPrefix + "anonymous"
	AnonymousGroup = ReservedPrefix + "unauthenticated"
)

// Method is how a caller is authenticated.
type Method string

// The methods.
const (
	ByLoopback    Method = "loopback"
	ByToken       Method = "token"
	ByCertificate Method = "certificate"
	ByOIDC        Method = "oidc"
	// ByKubernetes is for objects of a Kubernetes cluster, whose API server has authorized their authors.
	ByKubernetes Method = "kubernetes"
	// Anonymously means that nothing was proven, and the server requires no proof.
	Anonymously Method = "none"
)

// Subject is a caller: a person or program. It is immutable.
type Subject struct {
	Name   string
	Groups []string
	Method Method
	// Credential identifies the credential without revealing it: a token's ID, a certificate's serial number.
	Credential string
	// Only, if set, reports everything that the credential permits: roles add nothing. A proxy's credential has it.
	Only func(Action) bool
}

// Proof reads a credential that only one endpoint accepts. shown is false if the request has none; then the credentials
// that the guard accepts everywhere decide.
type Proof func(*http.Request) (s Subject, shown bool)

// Anonymous is the subject on a server without a Guard.
func Anonymous() Subject {
	return Subject{Name: AnonymousUser, Groups: []string{AnonymousGroup}, Method: Anonymously}
}

// localAdmin returns the caller over loopback.
func localAdmin() Subject {
	return Subject{Name: AdminUser, Groups: []string{AdminGroup, AuthenticatedGroup}, Method: ByLoopback}
}

// In reports whether the subject is in the group.
func (s Subject) In(group string) bool { return slices.Contains(s.Groups, group) }

// Reserved reports whether only servers assign the name of a user or group.
func Reserved(name string) bool { return strings.HasPrefix(name, ReservedPrefix) }

// Asked is one request in progress: its caller, and its line in the audit log. It belongs to the goroutine of the
// request.
type Asked struct {
	Subject Subject
	// Entry is completed while the request is processed.
	Entry Entry
	// Intent is the intent in the audit log that precedes the request's action; nil if there is none yet.
	Intent *Intent
	// Unjudged means that the route alone does not decide, and no other access decision has been made yet.
	Unjudged bool
	// Judged is when the caller's credential was verified. Again, if set, verifies it again, and its permission.
	Judged time.Time
	Again  func() error
}

type askedKey struct{}

// WithAsked returns a context that carries a.
func WithAsked(ctx context.Context, a *Asked) context.Context {
	return context.WithValue(ctx, askedKey{}, a)
}

// AskedOf returns the value from WithAsked, or nil.
func AskedOf(ctx context.Context) *Asked {
	a, _ := ctx.Value(askedKey{}).(*Asked)
	return a
}

// SubjectOf returns the caller of ctx's request, or Anonymous outside of one.
func SubjectOf(ctx context.Context) Subject {
	if a := AskedOf(ctx); a != nil {
		return a.Subject
	}
	return Anonymous()
}

// Note adds a detail to the audit line of ctx's request. It must not be secret.
func Note(ctx context.Context, name, value string) {
	a := AskedOf(ctx)
	if a == nil {
		return
	}
	if a.Entry.Details == nil {
		a.Entry.Details = map[string]string{}
	}
	a.Entry.Details[name] = value
}

// Budget returns the name for counting a user's limits. Credentials with a purpose of their own share names, so each is
// counted separately.
func (s Subject) Budget() string {
	if s.Only != nil {
		return string(s.Method) + " " + s.Name + " " + s.Credential
	}
	return string(s.Method) + " " + s.Name
}
