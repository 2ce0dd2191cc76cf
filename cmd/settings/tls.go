package settings

import (
	"github.com/spf13/pflag"

	"github.com/causeway-mesh/causeway/server"
)

// AddTLSFlags adds the settings for the lowest version of TLS that a server accepts, and for the names in its
// certificate.
func AddTLSFlags(f *pflag.FlagSet, version *string, names *[]string) {
	f.StringSliceVar(names, "tls-names", nil,
		"`names` or addresses under which others reach this server, for its certificate, beside those of this machine: that of a load balancer or of a Service; earlier ones stay in it")
	f.StringVar(version, "tls-min-version", server.TLS13,
		"minimum TLS `version` on every port: 1.3, or 1.2 for clients that support no newer one")
}
