package zone

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	connectionsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/downstream_connections/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// BootstrapConfig holds what a proxy needs to find its zone.
type BootstrapConfig struct {
	// Mesh is "default" when empty; Dataplane is required; Namespace is empty for Dataplanes without one.
	Mesh, Dataplane, Namespace string
	// ZoneIngress names the zone ingress that the proxy serves, instead of a Dataplane. It belongs to no mesh.
	ZoneIngress string
	// Gateway means that the Dataplane belongs to a MeshGateway, whose clients are outside the mesh. The proxy then
	// also limits its heap to MaxHeap bytes, 1 GiB when zero.
	Gateway bool
	MaxHeap int64
	// Egress names the Dataplane that the proxy serves, instead of Dataplane. It must be the operator's and have a
	// listener of type ZoneEgress.
	Egress string
	// XDSAddress is the zone's xDS server: grpcs://host:port, grpc://host:port (plaintext, loopback only), or host:port,
	// which is plaintext on loopback and TLS elsewhere.
	XDSAddress string
	// XDSCA verifies the xDS server: the name of a PEM file, or PEM text. TLS requires it.
	XDSCA string
	// Token is the proxy's dataplane token, or empty. The bootstrap contains it, so only its owner may be able to read
	// the bootstrap. A token needs TLS or loopback.
	Token string
	// RenewedTokenFile is the absolute path of a token that is renewed, for example by the kubelet. It replaces Token.
	// The proxy watches it through TokenSource, the absolute path of the file with DescribeToken's output. Without one, it
	// watches the folder of the token by itself, which needs Envoy 1.40 or later.
	RenewedTokenFile, TokenSource string
	// SpireSocket is the absolute path of the socket of the SPIRE agent beside the proxy, which a MeshIdentity with the
	// provider Spire needs. Empty if there is none.
	SpireSocket string
	// DNSAddress is where the proxy answers DNS queries for service names, `ip:port` on loopback. Empty turns that off.
	// DNSUpstreams are the servers, `ip:port`, to which it forwards queries for other names. If it is empty, the proxy
	// answers only for services.
	DNSAddress   string
	DNSUpstreams []string
	// ClusterDNS means that the resolver of a Kubernetes cluster answers for service names instead, because it asks the
	// zone.
	ClusterDNS bool
	// AdminAddress is where Envoy's admin interface listens, "127.0.0.1:9901" when empty. It must be on loopback.
	// "none" turns the interface off.
	AdminAddress string
	// ReadyAddress is where the proxy answers GET /ready without authentication, `ip:port`: 200 once it has its
	// configuration. Empty turns that off.
	ReadyAddress string
	// Probes are the kubelet's probes, which the proxy answers at ProbeAddress (`ip:port`) for the application at
	// ApplicationAddress, an IP address. If ApplicationLater is set, the address takes the place of that text later, and is
	// of IPv6 if ApplicationIPv6 is set.
	Probes                            []injection.Probe
	ProbeAddress, ApplicationAddress  string
	ApplicationLater, ApplicationIPv6 bool
	// PushMetricsEvery is how often the proxy sends its metrics to the collector of a MeshMetric. Zero turns that off.
	PushMetricsEvery time.Duration
	// MaxConnections limits the downstream connections that Envoy accepts, 50,000 when zero.
	MaxConnections int64
	// DrainTime limits how long TCP connections of clients that lost access stay open: whole seconds, 30 when zero.
	// Envoy reads it only from its command line, so the first line of the bootstrap shows how to start Envoy.
	DrainTime time.Duration
}

const (
	defaultAdminAddress   = "127.0.0.1:9901"
	noAdmin               = "none"
	defaultMaxConnections = 50_000
	defaultDrainTime      = 30 * time.Second
	defaultReadyTime      = 5 * time.Second
	defaultMaxHeap        = 1 << 30
	minMaxHeap            = 64 << 20
)

// Bootstrap returns Envoy's bootstrap configuration as YAML. Envoy receives everything else over the aggregated stream
// that it sets up. Bootstrap reads the file that XDSCA names. Errors name the field to change.
func Bootstrap(cfg BootstrapConfig) ([]byte, error) {
	json, err := cfg.render()
	if err != nil {
		return nil, err
	}
	text, err := yaml.JSONToYAML(json)
	start := fmt.Sprintf("# Start with: envoy -c FILE --drain-time-s %d\n", cfg.DrainTime/time.Second)
	return append([]byte(start), text...), err
}

// render sets defaults, and returns the bootstrap as JSON.
func (cfg *BootstrapConfig) render() ([]byte, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	cluster, err := zoneCluster(cfg)
	if err != nil {
		return nil, err
	}
	clusters := []*clusterv3.Cluster{cluster}
	if cfg.SpireSocket != "" {
		agent, err := spireCluster(cfg.SpireSocket)
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, agent)
	}
	overload, err := connectionLimit(cfg.MaxConnections)
	if err != nil {
		return nil, err
	}
	if cfg.Gateway {
		if err := limitHeap(overload, cfg.MaxHeap); err != nil {
			return nil, err
		}
	}
	b := &bootstrapv3.Bootstrap{
		Node:             node(cfg),
		DynamicResources: dynamicResources(),
		StaticResources:  &bootstrapv3.Bootstrap_StaticResources{Clusters: clusters, Secrets: tokenSecrets(cfg.Token)},
		OverloadManager:  overload,
	}
	if err := cfg.addDNS(b.Node); err != nil {
		return nil, err
	}
	if cfg.AdminAddress != noAdmin {
		address, err := loopbackAddress(cfg.AdminAddress)
		if err != nil {
			return nil, fmt.Errorf("admin address: %w", err)
		}
		b.Admin = &bootstrapv3.Admin{Address: address}
		if port := address.GetSocketAddress().GetPortValue(); port != 0 && (cfg.ZoneIngress == "" || cfg.ReadyAddress != "") {
			b.StaticResources.Clusters = append(b.StaticResources.Clusters, adminCluster(address))
			if cfg.ZoneIngress == "" { // a zone ingress belongs to no mesh, whose policies could measure it
				b.Node.Metadata = withField(b.Node.Metadata, xds.AdminKey, structpb.NewNumberValue(float64(port)))
			}
		}
	}
	if err := errors.Join(cfg.addPush(b), cfg.addReady(b), cfg.addProbes(b)); err != nil {
		return nil, err
	}
	if err := b.Validate(); err != nil {
		return nil, err
	}
	return protojson.MarshalOptions{UseProtoNames: true}.Marshal(b)
}

// fill sets defaults and checks combinations of fields.
func (cfg *BootstrapConfig) fill() error {
	if cfg.Egress != "" {
		if cfg.Dataplane != "" || cfg.ZoneIngress != "" {
			return errors.New("egress: cannot be combined with a dataplane or a zone ingress: use one of them")
		}
		cfg.Dataplane = cfg.Egress
	}
	if cfg.ZoneIngress == "" {
		cfg.Mesh = cmp.Or(cfg.Mesh, "default")
	}
	cfg.AdminAddress = cmp.Or(cfg.AdminAddress, defaultAdminAddress)
	cfg.MaxConnections = cmp.Or(cfg.MaxConnections, int64(defaultMaxConnections))
	cfg.DrainTime = cmp.Or(cfg.DrainTime, defaultDrainTime)
	cfg.MaxHeap = cmp.Or(cfg.MaxHeap, int64(defaultMaxHeap))
	switch {
	case cfg.DrainTime < time.Second || cfg.DrainTime%time.Second != 0:
		return fmt.Errorf("drain time %s: want whole seconds, at least one", cfg.DrainTime)
	case cfg.Dataplane == "" && cfg.ZoneIngress == "":
		return errors.New("dataplane: name the proxy's Dataplane, or its zone ingress")
	case cfg.Dataplane != "" && cfg.ZoneIngress != "":
		return errors.New("zone ingress: cannot be combined with a dataplane: use one of them")
	case cfg.Gateway && cfg.ZoneIngress != "":
		return errors.New("gateway: is for a Dataplane with networking.gateway, not for a zone ingress")
	case cfg.RenewedTokenFile != "" && cfg.Token != "":
		return errors.New("renewed token file: cannot be combined with a token: use one of them")
	case cfg.RenewedTokenFile != "" && (!filepath.IsAbs(cfg.RenewedTokenFile) || cfg.TokenSource != "" && !filepath.IsAbs(cfg.TokenSource)):
		return fmt.Errorf("renewed token file %q: want absolute paths for it and for the file that describes it: the proxy reads both", cfg.RenewedTokenFile)
	case cfg.RenewedTokenFile != "" && cfg.TokenSource == "" && strings.ContainsAny(cfg.RenewedTokenFile, "%:()"):
		return fmt.Errorf("renewed token file %q: its path has one of the characters %%:(), which Envoy reads as its own", cfg.RenewedTokenFile)
	case cfg.MaxHeap < minMaxHeap:
		return fmt.Errorf("max heap: want at least %d MiB", minMaxHeap>>20)
	}
	return nil
}

// withField sets a field of s, or of a new struct if s is nil.
func withField(s *structpb.Struct, key string, value *structpb.Value) *structpb.Struct {
	if s == nil {
		s = &structpb.Struct{Fields: map[string]*structpb.Value{}}
	}
	s.Fields[key] = value
	return s
}

func node(cfg *BootstrapConfig) *corev3.Node {
	if cfg.ZoneIngress != "" {
		return &corev3.Node{Id: xds.NodeID("", cfg.ZoneIngress), Cluster: "zone-ingress"}
	}
	n := &corev3.Node{Id: xds.NodeID(cfg.Mesh, cfg.Dataplane), Cluster: cfg.Mesh}
	if cfg.Namespace != "" {
		n.Metadata = withField(n.Metadata, xds.NamespaceKey, structpb.NewStringValue(cfg.Namespace))
	}
	return n
}

func connectionLimit(most int64) (*overloadv3.OverloadManager, error) {
	config, err := anypb.New(&connectionsv3.DownstreamConnectionsConfig{MaxActiveDownstreamConnections: most})
	if err != nil {
		return nil, err
	}
	return &overloadv3.OverloadManager{ResourceMonitors: []*overloadv3.ResourceMonitor{{
		Name:       "envoy.resource_monitors.global_downstream_max_connections",
		ConfigType: &overloadv3.ResourceMonitor_TypedConfig{TypedConfig: config},
	}}}, nil
}
