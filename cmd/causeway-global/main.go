// Command causeway-global is the global server: it holds mesh-wide policy and exchanges resources with the zones.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/causeway-mesh/causeway/cmd/settings"
	"github.com/causeway-mesh/causeway/global"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/web"
)

func main() { os.Exit(settings.Execute(newRoot(), os.Stderr)) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "causeway-global",
		Short: "The global server of a Causeway mesh",
		Args:  cobra.NoArgs,
	}
	root.AddCommand(newRun(&global.Config{}), newReplaceCA(), settings.NewHealthcheck("causeway-global", newRun(&global.Config{})), settings.NewMan("causeway-global"), settings.NewReference("causeway-global"), &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { _, _ = fmt.Fprintln(cmd.OutOrStdout(), server.Version()) },
	})
	return root
}

// newRun returns the run command. It fills cfg from the settings and serves with it.
func newRun(cfg *global.Config) *cobra.Command {
	var logLevel, logFormat, advertise string
	kube := settings.Kubernetes{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Serve zones and the HTTP API until SIGTERM",
		Long: "Serve zones and the HTTP API until SIGTERM.\n\n" +
			"Every flag is also a key of the --config file and an environment variable: --kds-address is CAUSEWAY_KDS_ADDRESS.\n" +
			"A flag wins over the environment, the environment over the file.",
		Example: "  causeway-global run --data-dir /var/lib/causeway\n" +
			"  causeway-global run --data-dir ./data --kds-address 127.0.0.1:5685 --kds-tls=false",
		Args: cobra.NoArgs,
		RunE: settings.Again(func(cmd *cobra.Command, _ []string) error {
			if err := settings.Load(cmd.Flags()); err != nil {
				return err
			}
			log, err := server.NewLogger(cmd.ErrOrStderr(), logLevel, logFormat)
			if err != nil {
				return err
			}
			cfg.Log, cfg.Panics, cfg.Now, cfg.Page = log, panics.New(log), settings.Clock(), web.New()
			tracing, err := server.StartTracing(cmd.Context(), "causeway-global", log)
			if err != nil {
				return err
			}
			defer tracing.Close()
			cfg.Tracer = tracing.Tracer
			cfg.KDSAdvertise = strings.FieldsFunc(advertise, func(c rune) bool { return c == ',' || c == ' ' })
			cfg.SecretsPassphrase, cfg.Store.Password = os.Getenv(secrets.PassphraseEnv), os.Getenv(backend.PasswordEnv)
			if cfg.Kubernetes, err = kube.Settings(); err != nil {
				return err
			}
			defer server.SaveMemory()()
			return global.Run(cmd.Context(), *cfg)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&cfg.DataDir, "data-dir", "", "`folder` for the store and the certificates (required)")
	settings.AddStoreFlags(f, &cfg.Store, "/causeway/global")
	settings.AddStartFlag(f, &cfg.Store)
	f.DurationVar(&cfg.EtcdHistory, "etcd-history", global.DefaultEtcdHistory, "`time` for which etcd keeps old revisions; one replica compacts older ones for the whole cluster; 0 leaves compaction to etcd")
	f.StringVar(&cfg.SecretsKeyFile, "secrets-key-file", "", "`file` of the key that seals keys and tokens; or set a passphrase in "+secrets.PassphraseEnv+"; default: secrets.key in the data folder")
	settings.UseCredential(f, "secrets-key-file", "causeway.secrets-key")
	f.StringVar(&cfg.APIAddress, "api-address", "127.0.0.1:5681", "`address` of the HTTP API")
	f.StringVar(&cfg.KDSAddress, "kds-address", ":5685", "`address` that zones connect to")
	f.StringVar(&cfg.DiagnosticsAddress, "diagnostics-address", "127.0.0.1:5680", "`address` of /livez, /readyz and /metrics, and on loopback of /debug/pprof/")
	f.BoolVar(&cfg.KDSTLS, "kds-tls", true, "serve zones over TLS, with a certificate created at the first start; false works on loopback only")
	addLimitFlags(f, cfg)
	kube.Add(f, "causeway-global")
	settings.AddAccessFlags(f, &cfg.Access)
	settings.AddTLSFlags(f, &cfg.TLSMinVersion, &cfg.TLSNames)
	f.BoolVar(&cfg.KDSInsecureAnonymous, "kds-insecure-anonymous", false, "accept zones without credentials, under any name that has not joined; for experiments and load generators")
	f.BoolVar(&cfg.KDSZoneTokens, "kds-zone-tokens", false, "accept bearer tokens from zones too (causewayctl zone token), for peers that cannot join")
	f.StringVar(&advertise, "kds-advertise-address", "", "`address` (HOST:PORT) in join strings; separate several with commas; default: this machine's")
	f.DurationVar(&cfg.ZoneCredentialLifetime, "zone-credential-lifetime", global.DefaultZoneCredentialLifetime, "lifetime of a zone's certificate, a `time`; zones renew at half of it")
	f.StringVar(&cfg.SystemNamespace, "system-namespace", resources.DefaultSystemNamespace, "`namespace` of system resources")
	f.StringVar(&cfg.ReadyFile, "ready-file", "", "`file` to write when the server is ready: JSON with every bound address")
	f.StringVar(&logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&logFormat, "log-format", "text", "text or json")
	settings.AddConfigFlag(f)
	return cmd
}

// addLimitFlags adds the limits of what zones receive and may send.
func addLimitFlags(f *pflag.FlagSet, cfg *global.Config) {
	f.IntVar(&cfg.KDSMaxMessageSize, "kds-max-message-size", kds.DefaultMaxMessageSize, "maximum size of a message to a zone, in `bytes`; larger ones are split")
	f.DurationVar(&cfg.KDSSendTimeout, "kds-send-timeout", kds.DefaultSendTimeout, "`time` after which the global disconnects a zone that does not read")
	f.IntVar(&cfg.KDSZoneLimits.Resources, "kds-zone-resources", kds.DefaultZoneResources, "maximum `number` of resources of one type per zone; the global refuses more by name and removes nothing")
	f.Int64Var(&cfg.KDSZoneLimits.Bytes, "kds-zone-bytes", kds.DefaultZoneBytes, "maximum size of all resources of one zone together, in `bytes`; the global refuses by name what exceeds it")
	f.IntVar(&cfg.KDSFullSyncLimit, "kds-full-sync-limit", kds.DefaultFullSyncLimit, "maximum `number` of zones that receive their full state at the same time; others wait in order of arrival")
}
