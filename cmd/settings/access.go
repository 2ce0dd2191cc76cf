package settings

import (
	"github.com/spf13/pflag"

	"github.com/causeway-mesh/causeway/access"
)

// AddAccessFlags adds the settings for access to a server's HTTP API.
func AddAccessFlags(f *pflag.FlagSet, s *access.Settings) {
	f.BoolVar(&s.RequireCredential, "api-require-credential", false,
		"require a credential on loopback too; otherwise programs of the server's own user and of root are admin there")
	f.StringVar(&s.ClientCAFile, "api-client-ca", "",
		"PEM `file` of authorities whose client certificates authenticate users: CN is the name, O the groups")
	f.StringVar(&s.OIDC.Issuer, "api-oidc-issuer", "",
		"`URL` of an OpenID Connect provider whose ID tokens authenticate users")
	f.StringVar(&s.OIDC.ClientID, "api-oidc-client-id", "", "required audience of those tokens")
	f.StringVar(&s.OIDC.UserClaim, "api-oidc-user-claim", "sub", "`claim` with the user's name")
	f.StringVar(&s.OIDC.GroupsClaim, "api-oidc-groups-claim", "groups", "`claim` with the user's groups")
	f.StringVar(&s.OIDC.Prefix, "api-oidc-prefix", "oidc:", "`prefix` of those names and groups")
	f.StringVar(&s.OIDC.CAFile, "api-oidc-ca", "",
		"PEM `file` of the authorities of the provider's certificate; the system's by default")
	f.Float64Var(&s.Limits.RequestsPerSecond, "api-requests-per-second", access.DefaultRequestsPerSecond,
		"requests per second that one user may make; the burst is twice that")
	f.Int64Var(&s.AuditFileBytes, "audit-file-bytes", access.DefaultLogFileBytes,
		"`bytes` after which the audit log starts a new file")
	f.IntVar(&s.AuditFiles, "audit-files", access.DefaultLogFiles,
		"`number` of audit log files to keep, for actions and for refusals each")
}
