package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/attribute"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/cmd/settings"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/web"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

func newRun() *cobra.Command {
	cfg, kube := zone.Config{}, settings.Kubernetes{}
	var logLevel, logFormat, joinFile string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Serve the zone's proxies and the HTTP API until SIGTERM",
		Long: "Serve the zone's proxies and the HTTP API until SIGTERM. A zone that has joined a global (--join, or\n" +
			"causeway-zone join) knows its name and its global; without a global the zone runs alone.\n\n" +
			"Every flag is also a key of the --config file and an environment variable: --xds-address is\n" +
			"CAUSEWAY_XDS_ADDRESS. A flag wins over the environment, the environment over the file.",
		Example: "  causeway-zone run --data-dir /var/lib/causeway-zone --join causeway-join:v1:eyJ6b25l...\n" +
			"  causeway-zone run --data-dir /var/lib/causeway-zone\n" +
			"  causeway-zone run --zone alone --data-dir ./data",
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
			if cfg.Join, err = joinOfFile(cfg.Join, joinFile, cfg.DataDir); err != nil {
				return err
			}
			tracing, err := server.StartTracing(cmd.Context(), "causeway-zone", log, attribute.String("zone", cfg.Zone))
			if err != nil {
				return err
			}
			defer tracing.Close()
			cfg.Tracer = tracing.Tracer
			cfg.Store.Password, cfg.SecretsPassphrase = os.Getenv(backend.PasswordEnv), os.Getenv(secrets.PassphraseEnv)
			if cfg.Kubernetes, err = kube.Settings(); err != nil {
				return err
			}
			defer server.SaveMemory()()
			return zone.Run(cmd.Context(), cfg)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Zone, "zone", "", "`name` of the zone (required, unless it joins or has joined)")
	addGlobalFlags(f, &cfg, &joinFile)
	f.StringVar(&cfg.DataDir, "data-dir", "", "`folder` for the store, the certificates and the identity keys (required)")
	addStoreFlags(f, &cfg)
	f.StringVar(&cfg.SecretsKeyFile, "secrets-key-file", "", "`file` of the key that seals keys and tokens; or set a passphrase in "+secrets.PassphraseEnv+"; default: secrets.key in the data folder")
	settings.UseCredential(f, "secrets-key-file", "causeway.secrets-key")
	f.StringVar(&cfg.ExternalSecretsDir, "external-secrets-dir", "", "`folder` of keys and certificates that MeshExternalServices may refer to: those of a mesh in MESH/, those of a namespace in MESH/NAMESPACE/; without it they cannot refer to files")
	addListenFlags(f, &cfg)
	addLimitFlags(f, &cfg)
	f.StringVar(&cfg.RBACForm, "rbac-form", string(rbac.Auto), "`form` of permissions in Envoy: list, compiled, or auto, which compiles long ones")
	f.StringVar(&cfg.AccessLog, "access-log", "", "where proxies log allowed and denied requests: `als` (this zone collects them for reports), stdout, or files; default: nowhere")
	addKubernetesFlags(f, &kube, &cfg.Injection)
	settings.AddAccessFlags(f, &cfg.Access)
	settings.AddTLSFlags(f, &cfg.TLSMinVersion, &cfg.TLSNames)
	f.StringVar(&cfg.SystemNamespace, "system-namespace", resources.DefaultSystemNamespace, "`namespace` of system resources")
	f.StringVar(&cfg.ReadyFile, "ready-file", "", "`file` to write when the server is ready: JSON with every bound address")
	f.StringVar(&logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&logFormat, "log-format", "text", "text or json")
	settings.AddConfigFlag(f)
	return cmd
}

// addKubernetesFlags adds the settings of a zone with a cluster, and of the proxies that it gives to pods there.
func addKubernetesFlags(f *pflag.FlagSet, kube *settings.Kubernetes, i *zone.Injection) {
	kube.Add(f, "causeway-zone")
	kube.AddAuthority(f)
	f.StringVar(&i.Image, "injection-image", "", "`image` of this program, for pods that ask for a proxy by the label kuma.io/sidecar-injection; without it pods get none")
	f.StringVar(&i.EnvoyImage, "injection-envoy-image", "", "`image` of Envoy, for the same pods")
	f.StringVar(&i.XDSAddress, "injection-xds-address", "", "`address`, HOST:PORT, at which those pods reach this server's --xds-address")
	f.StringToStringVar(&i.Requests, "injection-requests", injection.Requests(), "`resources` that the proxy of such a pod requests")
	f.StringToStringVar(&i.Limits, "injection-limits", injection.Limits(), "`resources` that it may use at most")
	f.BoolVar(&i.CNI, "injection-cni", false, "the plugin causeway-cni on each node captures those pods, and none of their containers: see causeway-zone cni")
}

// addStoreFlags adds the flags that locate the zone's resources.
func addStoreFlags(f *pflag.FlagSet, cfg *zone.Config) {
	settings.AddStoreFlags(f, &cfg.Store, "")
	settings.AddStartFlag(f, &cfg.Store)
	f.Lookup("etcd-prefix").Usage = "`path` in etcd below which this zone's keys are; /causeway/zones/NAME by default"
}

// addLimitFlags adds the limits of what the zone accepts, sends and waits for.
func addLimitFlags(f *pflag.FlagSet, cfg *zone.Config) {
	f.DurationVar(&cfg.IdentityOverlap, "identity-overlap", 10*time.Minute, "maximum `time` that a new authority of a mesh waits for offline zones before it signs; it always waits for connected zones, see causewayctl keys rotate")
	f.IntVar(&cfg.NamespaceLimits.ServicePorts, "namespace-service-ports", api.DefaultNamespaceServicePorts, "maximum `number` of ports of all MeshServices of a namespace in a mesh; the zone refuses more and removes nothing. The system namespace has no limit")
	f.IntVar(&cfg.NamespaceLimits.Dataplanes, "namespace-dataplanes", api.DefaultNamespaceDataplanes, "maximum `number` of Dataplanes of a namespace in a mesh, likewise")
	f.IntVar(&cfg.KDSMaxMessageSize, "kds-max-message-size", kds.DefaultMaxMessageSize, "maximum size of a message to the global, in `bytes`; larger ones are split")
}

// addListenFlags adds the addresses that the zone serves on.
func addListenFlags(f *pflag.FlagSet, cfg *zone.Config) {
	f.StringVar(&cfg.APIAddress, "api-address", "127.0.0.1:5681", "`address` of the HTTP API")
	f.StringVar(&cfg.XDSAddress, "xds-address", "127.0.0.1:5678", "`address` that proxies connect to")
	f.StringVar(&cfg.DNSAddress, "dns-address", "",
		"`address` at which the resolver of a Kubernetes cluster asks, by UDP, for the names that HostnameGenerators give to services; empty for none")
	f.BoolVar(&cfg.XDSRequireCredentials, "xds-require-credentials", false, "require a dataplane token or an SVID on loopback too; elsewhere proxies always need one")
	f.StringVar(&cfg.DiagnosticsAddress, "diagnostics-address", "127.0.0.1:5680", "`address` of /livez, /readyz and /metrics, and on loopback of /debug/pprof/")
}

// addGlobalFlags adds the settings for the zone's connection to its global.
func addGlobalFlags(f *pflag.FlagSet, cfg *zone.Config, joinFile *string) {
	f.StringVar(&cfg.Join, "join", "", "join `string` from causewayctl zone create; it works once and may remain set. CAUSEWAY_JOIN keeps it off the command line")
	f.StringVar(joinFile, "join-file", "", "`file` with the join string, instead of --join; not needed after the zone has joined")
	settings.UseCredential(f, "join-file", "causeway.join")
	f.StringVar(&cfg.Global, "global", "", "`URL` of the global: grpcs://HOST:5685, or grpc:// on loopback; of several replicas: grpcs://A:5685,B:5685; none: the zone runs alone")
	f.StringVar(&cfg.GlobalCA, "global-ca", "", "PEM `file` of the CA that signed the global's certificate")
	f.StringVar(&cfg.GlobalCASHA256, "global-ca-sha256", "", "SHA-256 of that CA's certificate, in `hex`; the global prints it at start")
	f.BoolVar(&cfg.GlobalInsecure, "global-insecure", false, "do not verify the global's certificate (for experiments)")
}
