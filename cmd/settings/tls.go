package settings

import (
	"github.com/spf13/pflag"

	"github.com/causeway-mesh/causeway/server"
)

// AddTLSFlag adds the setting for the lowest version of TLS that a server accepts.
func AddTLSFlag(f *pflag.FlagSet, version *string) {
	f.StringVar(version, "tls-min-version", server.TLS13,
		"minimum TLS `version` on every port: 1.3, or 1.2 for clients that support no newer one")
}
