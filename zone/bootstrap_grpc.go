package zone

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/causeway-mesh/causeway/zone/xds"
)

// GRPCBootstrapConfig holds what a gRPC program without a proxy needs to find its zone and its identity.
type GRPCBootstrapConfig struct {
	// Mesh is "default" when empty; Dataplane is required; Namespace is empty for Dataplanes without one.
	Mesh, Dataplane, Namespace string
	// XDSAddress is as in BootstrapConfig.
	XDSAddress string
	// XDSCA is the name of a PEM file that verifies the xDS server. TLS requires it.
	XDSCA string
	// IdentityDir is the folder in which `causewayctl svid --watch --out-dir` keeps the identity fresh. Required.
	IdentityDir string
	// Refresh is how often the program checks for new files there, 10 seconds when zero.
	Refresh time.Duration
}

// The files of IdentityDir, as causewayctl names them.
const (
	certificateFile = "svid.pem"
	keyFile         = "svid_key.pem"
	ownBundleFile   = "own_bundle.pem"
	bundleMapFile   = "bundle_map.json"
)

const defaultIdentityRefresh = 10 * time.Second

// refresh returns the interval in gRPC's duration format.
func (c *GRPCBootstrapConfig) refresh() string {
	return fmt.Sprintf("%gs", cmp.Or(c.Refresh, defaultIdentityRefresh).Seconds())
}

// grpcBootstrap is the part of gRPC's bootstrap file that Causeway uses (gRFC A27, A29, A36, A87).
type grpcBootstrap struct {
	Servers               []grpcServer             `json:"xds_servers"`
	Node                  grpcNode                 `json:"node"`
	CertificateProviders  map[string]grpcPluginRef `json:"certificate_providers"`
	ServerListenerPattern string                   `json:"server_listener_resource_name_template"`
}

type grpcServer struct {
	URI         string            `json:"server_uri"`
	Credentials []grpcCredentials `json:"channel_creds"`
	Features    []string          `json:"server_features"`
}

type grpcCredentials struct {
	Type   string          `json:"type"`
	Config *grpcTLSOptions `json:"config,omitempty"`
}

type grpcTLSOptions struct {
	CA string `json:"ca_certificate_file"`
	// Certificate and Key are the program's SVID, which the zone requires off loopback.
	Certificate string `json:"certificate_file"`
	Key         string `json:"private_key_file"`
	Refresh     string `json:"refresh_interval"`
}

type grpcNode struct {
	ID       string            `json:"id"`
	Cluster  string            `json:"cluster"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

type grpcPluginRef struct {
	Plugin string          `json:"plugin_name"`
	Config grpcFileWatcher `json:"config"`
}

type grpcFileWatcher struct {
	Certificate string `json:"certificate_file"`
	Key         string `json:"private_key_file"`
	// CA is for programs that do not support bundle maps, or have that support turned off.
	CA        string `json:"ca_certificate_file"`
	BundleMap string `json:"spiffe_trust_bundle_map_file"`
	Refresh   string `json:"refresh_interval"`
}

// GRPCBootstrap returns the bootstrap file of a gRPC program as JSON. The variable GRPC_XDS_BOOTSTRAP names the file to
// the program. GRPCBootstrap reads no files. Errors name the field to change.
//
// The program accepts clients of other trust domains only if it supports bundle maps, as grpc-go does with
// GRPC_EXPERIMENTAL_XDS_MTLS_SPIFFE=true. Otherwise it trusts only the CAs of its own trust domain, so that no zone's
// CA can vouch for the clients of another.
func GRPCBootstrap(cfg GRPCBootstrapConfig) ([]byte, error) {
	cfg.Mesh = cmp.Or(cfg.Mesh, "default")
	switch {
	case cfg.Dataplane == "":
		return nil, errors.New("dataplane: name the Dataplane of the program")
	case cfg.IdentityDir == "":
		return nil, errors.New("identity dir: name the folder in which causewayctl svid keeps the identity")
	}
	server, err := grpcServerOf(&cfg)
	if err != nil {
		return nil, err
	}
	node := grpcNode{ID: xds.NodeID(cfg.Mesh, cfg.Dataplane), Cluster: cfg.Mesh}
	if cfg.Namespace != "" {
		node.Metadata = map[string]string{xds.NamespaceKey: cfg.Namespace}
	}
	in := func(name string) string { return filepath.Join(cfg.IdentityDir, name) }
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	err = encoder.Encode(grpcBootstrap{
		Servers: []grpcServer{server},
		Node:    node,
		CertificateProviders: map[string]grpcPluginRef{xds.CertificateProvider: {Plugin: "file_watcher",
			Config: grpcFileWatcher{
				Certificate: in(certificateFile), Key: in(keyFile), CA: in(ownBundleFile), BundleMap: in(bundleMapFile),
				Refresh: cfg.refresh(),
			}}},
		ServerListenerPattern: xds.ServerListenerTemplate,
	})
	return out.Bytes(), err
}

func grpcServerOf(cfg *GRPCBootstrapConfig) (grpcServer, error) {
	host, port, secure, err := xdsAddress(cfg.XDSAddress)
	if err != nil {
		return grpcServer{}, fmt.Errorf("xds address %q: %w", cfg.XDSAddress, err)
	}
	credentials := grpcCredentials{Type: "insecure"}
	if secure {
		if cfg.XDSCA == "" {
			return grpcServer{}, errNoXDSCA
		}
		credentials = grpcCredentials{Type: "tls", Config: &grpcTLSOptions{
			CA: cfg.XDSCA, Certificate: filepath.Join(cfg.IdentityDir, certificateFile),
			Key: filepath.Join(cfg.IdentityDir, keyFile), Refresh: cfg.refresh(),
		}}
	}
	return grpcServer{
		URI:         net.JoinHostPort(host, strconv.Itoa(int(port))),
		Credentials: []grpcCredentials{credentials},
		Features:    []string{"xds_v3"},
	}, nil
}
