package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/causeway-mesh/causeway/cmd/settings"
	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/zone"
)

func newBootstrap() *cobra.Command {
	cfg, grpc, identityDir, tokenFile, file := zone.BootstrapConfig{}, false, "", "", ""
	heap := int64(0)
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Print the bootstrap of an Envoy, or of a gRPC program",
		Long: "Print the bootstrap with which Envoy starts. With --grpc, print that of a program whose gRPC library\n" +
			"gets its listeners and permissions by xDS. `causewayctl svid --watch` keeps its identity in\n" +
			"--identity-dir.",
		Example: "  causeway-zone bootstrap --dataplane backend-1 --mesh default > envoy.yaml\n" +
			"  envoy -c envoy.yaml --drain-time-s 30\n\n" +
			"  causewayctl dataplane token backend-1 --out token\n" +
			"  causeway-zone bootstrap --dataplane backend-1 --xds-address zone.example:5678 --xds-ca ca.crt --token-file token --out envoy.yaml\n\n" +
			"  causeway-zone bootstrap --gateway --dataplane edge-1 > envoy.yaml\n\n" +
			"  causeway-zone bootstrap --grpc --dataplane orders-1 --identity-dir /run/orders/identity > grpc.json\n" +
			"  GRPC_XDS_BOOTSTRAP=grpc.json GRPC_EXPERIMENTAL_XDS_MTLS_SPIFFE=true orders",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := cmd.Flags().Changed // only the command line: several programs may share the environment
			forEnvoy := slices.IndexFunc(envoyOnly, given)
			if err := settings.Load(cmd.Flags()); err != nil {
				return err
			}
			if grpc && forEnvoy >= 0 {
				return fmt.Errorf("--%s: is for an Envoy, not for --grpc", envoyOnly[forEnvoy])
			}
			if tokenFile != "" {
				token, err := credential.Token("--token-file", tokenFile)
				if err != nil {
					return err
				}
				cfg.Token = token
			}
			cfg.MaxHeap = heap << 20
			if !cfg.Gateway && given("max-heap") {
				return errors.New("--max-heap: is for a gateway: use it with --gateway")
			}
			if err := describeToken(&cfg, file); err != nil {
				return err
			}
			out, err := printed(cfg, grpc, identityDir)
			if err != nil {
				return err
			}
			if file != "" {
				return server.WriteFile(file, out, 0o600)
			}
			_, err = cmd.OutOrStdout().Write(out)
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVar(&grpc, "grpc", false, "print the bootstrap of a gRPC program without a proxy")
	f.StringVar(&identityDir, "identity-dir", "",
		"with --grpc: `directory` of the identity, as in causewayctl svid --out-dir")
	f.StringVar(&file, "out", "", "`file` for the bootstrap, readable by its owner only; default: standard output")
	bootstrapFlags(f, &cfg, &heap, &tokenFile)
	return cmd
}

// tokenSource is the file beside the bootstrap that tells the proxy which file has its token.
const tokenSource = "token.yaml"

// describeToken writes, beside the bootstrap, which file has a token that is renewed.
func describeToken(cfg *zone.BootstrapConfig, file string) error {
	if cfg.RenewedTokenFile == "" {
		return nil
	}
	if file == "" {
		return errors.New("--renewed-token-file: want --out, beside which it is described to the proxy")
	}
	folder, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return err
	}
	text, err := zone.DescribeToken(cfg.RenewedTokenFile)
	if err != nil {
		return err
	}
	cfg.TokenSource = filepath.Join(folder, tokenSource)
	return server.WriteFile(cfg.TokenSource, text, 0o600)
}

// bootstrapFlags adds the flags that describe the subject of the bootstrap.
func bootstrapFlags(f *pflag.FlagSet, cfg *zone.BootstrapConfig, heap *int64, tokenFile *string) {
	f.StringVar(&cfg.Dataplane, "dataplane", "", "`name` of the Dataplane (required, or --zone-ingress)")
	f.StringVar(&cfg.Egress, "egress", "",
		"`name` of the Dataplane with a listener of type ZoneEgress, for the proxy that leads out of the mesh")
	f.StringVar(&cfg.ZoneIngress, "zone-ingress", "",
		"`name` of the ZoneIngress, for the proxy that accepts connections from other zones")
	f.BoolVar(&cfg.Gateway, "gateway", false,
		"the Dataplane belongs to a MeshGateway, with clients outside the mesh: its proxy limits its memory")
	f.Int64Var(heap, "max-heap", 1024, "with --gateway: `MiB` of memory near which the proxy refuses requests")
	f.StringVar(&cfg.Mesh, "mesh", "default", "`mesh` of the Dataplane")
	f.StringVar(&cfg.Namespace, "namespace", "", "`namespace` of the Dataplane, if it has one")
	f.StringVar(&cfg.XDSAddress, "xds-address", "127.0.0.1:5678", "`address` of the zone's xDS server")
	f.StringVar(&cfg.XDSCA, "xds-ca", "", "PEM `file` of the CA of the xDS server's certificate; needed off loopback")
	f.StringVar(tokenFile, "token-file", "",
		"`file` of the proxy's token, from causewayctl dataplane token; needed off loopback. The bootstrap holds it")
	f.StringVar(&cfg.RenewedTokenFile, "renewed-token-file", "",
		"absolute `path` of a token that is renewed there, as Kubernetes does; instead of --token-file. The proxy reads it itself, by the file token.yaml beside --out")
	f.StringVar(&cfg.SpireSocket, "spire-socket", "",
		"`path` of the socket of the SPIRE agent on the proxy's machine, for identities by SPIRE")
	addNames(f, cfg)
	f.StringVar(&cfg.AdminAddress, "admin-address", "127.0.0.1:9901", "`address` of Envoy's own admin interface")
	f.StringVar(&cfg.ReadyAddress, "ready-address", "",
		"`address`, such as 0.0.0.0:15021, on which the proxy tells everybody by GET /ready whether it has its configuration, and nothing else")
	f.StringVar(&cfg.ProbeAddress, "probe-address", "",
		"`address`, such as 0.0.0.0:15020, on which the proxy answers the kubelet what --probes say, and nothing else")
	f.Var(probesFlag{&cfg.Probes}, "probes", "probes and hooks of a pod, as the injection of proxies writes them: a `list` in JSON")
	f.StringVar(&cfg.ApplicationAddress, "application-address", "", "`address` of the pod, at which the proxy asks the application for --probes")
	f.DurationVar(&cfg.PushMetricsEvery, "push-metrics-every", 0,
		"`time` between two times at which Envoy sends its metrics to the collector of a MeshMetric; 0 for never")
	f.DurationVar(&cfg.DrainTime, "drain-time", 30*time.Second,
		"`time` within which TCP connections of clients that lost access end")
}

// addNames adds the flags about names of services.
func addNames(f *pflag.FlagSet, cfg *zone.BootstrapConfig) {
	f.StringVar(&cfg.DNSAddress, "dns-address", "",
		"`address` on loopback, such as 127.0.0.1:15053, on which the proxy answers DNS queries for the names of services")
	f.StringSliceVar(&cfg.DNSUpstreams, "dns-upstream", nil,
		"`address` of a DNS server, such as 10.0.0.2:53, to which the proxy forwards queries for other names; up to 3")
	f.BoolVar(&cfg.ClusterDNS, "cluster-dns", false,
		"the resolver of the Kubernetes cluster knows the names of services, since it asks the zone (causeway-zone run --dns-address); not with --dns-address")
}

// probesFlag reads a list of probes.
type probesFlag struct{ into *[]injection.Probe }

func (p probesFlag) String() string { return "" }
func (p probesFlag) Type() string   { return "list" }
func (p probesFlag) Set(text string) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(p.into)
}

// envoyOnly are the flags that have no meaning for a gRPC program.
var envoyOnly = []string{"egress", "zone-ingress", "gateway", "max-heap", "admin-address", "drain-time", "token-file", "renewed-token-file", "spire-socket",
	"dns-address", "dns-upstream", "cluster-dns", "push-metrics-every", "ready-address", "probe-address", "probes", "application-address"}

// printed returns the bootstrap for Envoy, or for a gRPC program if grpc is set.
func printed(cfg zone.BootstrapConfig, grpc bool, identityDir string) ([]byte, error) {
	if !grpc {
		return zone.Bootstrap(cfg)
	}
	return zone.GRPCBootstrap(zone.GRPCBootstrapConfig{
		Mesh: cfg.Mesh, Dataplane: cfg.Dataplane, Namespace: cfg.Namespace, XDSAddress: cfg.XDSAddress,
		XDSCA: cfg.XDSCA, IdentityDir: identityDir,
	})
}
