package zone_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// accepts runs envoy --mode validate.
func accepts(t *testing.T, bootstrap []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	must(t, os.WriteFile(file, bootstrap, 0o600))
	out, err := exec.Command(envoyBinary(t), "--mode", "validate", "-c", file, "--log-level", "warning").CombinedOutput()
	if err != nil {
		t.Fatalf("envoy refuses it: %v\n%s\n%s", err, out, bootstrap)
	}
}

func TestEnvoyAcceptsBootstraps(t *testing.T) {
	t.Parallel()
	certificate, err := server.LoadOrCreateCertificate(t.TempDir(), []string{"zone.example"}, newBox(t), time.Now)
	must(t, err)
	caFile := filepath.Join(t.TempDir(), "ca.crt")
	must(t, os.WriteFile(caFile, certificate.CAPEM, 0o600))
	for name, cfg := range map[string]zone.BootstrapConfig{
		"loopback": {Dataplane: "backend", XDSAddress: "127.0.0.1:5678"},
		"grpc": {Dataplane: "backend", XDSAddress: "grpc://127.0.0.1:5678", Namespace: "payments", Mesh: "shop",
			AdminAddress: "none"},
		"tls name":  {Dataplane: "backend", XDSAddress: "zone.example:5678", XDSCA: caFile, AdminAddress: "127.0.0.1:9000"},
		"tls ip":    {Dataplane: "backend", XDSAddress: "grpcs://192.0.2.1:5678", XDSCA: string(certificate.CAPEM)},
		"gateway":   {Dataplane: "backend", XDSAddress: "127.0.0.1:5678", Gateway: true, MaxHeap: 128 << 20},
		"push":      {Dataplane: "backend", XDSAddress: "127.0.0.1:5678", PushMetricsEvery: time.Minute},
		"tls local": {Dataplane: "backend", XDSAddress: "grpcs://localhost:5678", XDSCA: caFile, MaxConnections: 10},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := zone.Bootstrap(cfg)
			must(t, err)
			accepts(t, b)
			if tls := strings.Contains(string(b), "UpstreamTlsContext"); tls != strings.HasPrefix(name, "tls") {
				t.Errorf("TLS: %v", tls)
			}
		})
	}
}

// TestLoggersOfEnvoy: none of the loggers that this Envoy has writes lines to a connection, so `backends[].tcp` of a
// MeshAccessLog cannot take effect. One that is new here may.
func TestLoggersOfEnvoy(t *testing.T) {
	t.Parallel()
	bootstrap, err := zone.Bootstrap(zone.BootstrapConfig{Dataplane: "backend", XDSAddress: "127.0.0.1:5678",
		AdminAddress: "127.0.0.1:0"})
	must(t, err)
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	must(t, os.WriteFile(file, bootstrap, 0o600))
	out, err := exec.Command(envoyBinary(t), "--mode", "init_only", "-c", file, "--log-level", "info",
		"--use-dynamic-base-id").CombinedOutput()
	must(t, err)
	var names []string
	for line := range strings.Lines(string(out)) {
		if _, list, found := strings.Cut(line, " envoy.access_loggers: "); found {
			names = strings.Split(strings.TrimSpace(list), ", ")
		}
	}
	known := []string{"dynamic_modules", "file", "fluentd", "http_grpc", "open_telemetry", "stats", "stderr", "stdout", "tcp_grpc", "wasm"}
	for _, name := range names {
		if short := strings.TrimPrefix(name, "envoy.access_loggers."); strings.HasPrefix(name, "envoy.access_loggers.") && !slices.Contains(known, short) {
			t.Errorf("the logger %s is new: does it write lines to a connection?", name)
		}
	}
	if !slices.Contains(names, "envoy.access_loggers.file") {
		t.Errorf("Envoy names these loggers: %q", names)
	}
}

func TestBootstrapRefuses(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]zone.BootstrapConfig{
		"no dataplane":        {XDSAddress: "127.0.0.1:5678"},
		"no port":             {Dataplane: "backend", XDSAddress: "127.0.0.1"},
		"port 0":              {Dataplane: "backend", XDSAddress: "127.0.0.1:0"},
		"plaintext elsewhere": {Dataplane: "backend", XDSAddress: "grpc://192.0.2.1:5678"},
		"tls without ca":      {Dataplane: "backend", XDSAddress: "192.0.2.1:5678"},
		"ca file missing":     {Dataplane: "backend", XDSAddress: "192.0.2.1:5678", XDSCA: "/nowhere/ca.crt"},
		"gateway of a zone":   {ZoneIngress: "ingress", XDSAddress: "127.0.0.1:5678", Gateway: true},
		"push of a zone":      {ZoneIngress: "ingress", XDSAddress: "127.0.0.1:5678", PushMetricsEvery: time.Minute},
		"push too often":      {Dataplane: "backend", XDSAddress: "127.0.0.1:5678", PushMetricsEvery: time.Millisecond},
		"small heap":          {Dataplane: "backend", XDSAddress: "127.0.0.1:5678", Gateway: true, MaxHeap: 1 << 20},
		"open admin":          {Dataplane: "backend", XDSAddress: "127.0.0.1:5678", AdminAddress: "0.0.0.0:9901"},
	} {
		if b, err := zone.Bootstrap(cfg); err == nil {
			t.Errorf("%s: %s", name, b)
		}
	}
}

func TestGRPCBootstrapRefuses(t *testing.T) {
	t.Parallel()
	good := zone.GRPCBootstrapConfig{Dataplane: "orders", XDSAddress: "127.0.0.1:5678", IdentityDir: "/run/orders"}
	if _, err := zone.GRPCBootstrap(good); err != nil {
		t.Error(err)
	}
	for field, change := range map[string]func(*zone.GRPCBootstrapConfig){
		"dataplane":    func(c *zone.GRPCBootstrapConfig) { c.Dataplane = "" },
		"identity dir": func(c *zone.GRPCBootstrapConfig) { c.IdentityDir = "" },
		"xds address":  func(c *zone.GRPCBootstrapConfig) { c.XDSAddress = "grpc://192.0.2.1:5678" },
		"xds CA":       func(c *zone.GRPCBootstrapConfig) { c.XDSAddress = "192.0.2.1:5678" },
	} {
		cfg := good
		change(&cfg)
		if b, err := zone.GRPCBootstrap(cfg); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s: %v %s", field, err, b)
		}
	}
}

// TestEnvoyAcceptsListeners puts the resources for inbounds of each protocol into a bootstrap.
func TestEnvoyAcceptsListeners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(`{type: Dataplane, mesh: default, name: backend, networking: {address: 192.0.2.1, inbound: [
  {name: one, port: 80, protocol: http}, {port: 81, servicePort: 9081, protocol: http2}, {port: 82, tags: {kuma.io/protocol: grpc}},
  {port: 83, protocol: kafka}, {port: 84, address: "::1", serviceAddress: "192.0.2.2"}, {port: 85, state: NotReady}]}}`)
	w.accepted(zone.BootstrapConfig{Dataplane: "backend"}, 6)
}

// TestEnvoyAcceptsGateways does the same with a gateway that has listeners of each protocol.
func TestEnvoyAcceptsGateways(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secret("a", serverCertificate(t, 1, "a.example"))
	w.listen("{port: 8080, protocol: HTTP}", `{port: 8080, protocol: HTTP, hostname: "*.example"}`,
		`{port: 8443, protocol: HTTPS, hostname: "*.example", tls: {mode: TERMINATE, certificates: [{secret: a}, {secret: a}]}}`,
		"{port: 8443, protocol: TLS, hostname: b.example, tls: {mode: PASSTHROUGH}}",
		"{port: 8443, protocol: TLS, tls: {mode: TERMINATE, certificates: [{secret: a}]}}", "{port: 9000, protocol: TCP}")
	w.apply(`{type: Dataplane, mesh: default, name: backend, networking: {address: 192.0.2.1, gateway: {type: BUILTIN, tags: {kuma.io/service: edge}}}}
---
{type: MeshService, mesh: default, name: one, spec: {ports: [{port: 80, appProtocol: http}]}}
---
{type: MeshService, mesh: default, name: two, spec: {ports: [{port: 80, appProtocol: grpc}]}}
---
{type: MeshTCPRoute, mesh: default, name: tcp, spec: {targetRef: {kind: MeshGateway, name: edge}, to: [{targetRef: {kind: Mesh}, rules: [{default: {backendRefs: [{kind: MeshService, name: one, weight: 1}, {kind: MeshService, name: two, weight: 3}]}}]}]}}`)
	w.route("web", "", to("/", "one")+", "+to("/two", "two"))
	w.accepted(zone.BootstrapConfig{Dataplane: "backend", Gateway: true}, 3)
}

// accepted puts what the proxy of the Dataplane backend is sent into its bootstrap, for Envoy to accept.
func (w *world) accepted(cfg zone.BootstrapConfig, listeners int) {
	t := w.t
	t.Helper()
	cfg.XDSAddress = w.address
	raw, err := zone.Bootstrap(cfg)
	must(t, err)
	json, err := yaml.YAMLToJSON(raw)
	must(t, err)
	bootstrap := &bootstrapv3.Bootstrap{}
	must(t, protojson.Unmarshal(json, bootstrap))
	for _, r := range w.fetch("type.googleapis.com/envoy.config.cluster.v3.Cluster") {
		c := &clusterv3.Cluster{}
		must(t, proto.Unmarshal(r.Resource.Value, c))
		bootstrap.StaticResources.Clusters = append(bootstrap.StaticResources.Clusters, c)
	}
	for _, r := range w.fetch("type.googleapis.com/envoy.config.listener.v3.Listener") {
		l := &listenerv3.Listener{}
		must(t, proto.Unmarshal(r.Resource.Value, l))
		bootstrap.StaticResources.Listeners = append(bootstrap.StaticResources.Listeners, l)
	}
	if n := len(bootstrap.StaticResources.Listeners); n != listeners {
		t.Fatalf("%d listeners", n)
	}
	json, err = protojson.Marshal(bootstrap)
	must(t, err)
	out, err := yaml.JSONToYAML(json)
	must(t, err)
	accepts(t, out)
}

// fetch returns all resources of a type for the proxy of the Dataplane backend.
func (w *world) fetch(typeURL string) []*discovery.Resource {
	w.t.Helper()
	conn, err := grpc.NewClient(w.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(w.t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	must(w.t, err)
	must(w.t, stream.Send(&discovery.DeltaDiscoveryRequest{
		Node: &corev3.Node{Id: xds.NodeID("default", "backend")}, TypeUrl: typeURL, ResourceNamesSubscribe: []string{"*"},
	}))
	response, err := stream.Recv()
	must(w.t, err)
	return response.Resources
}
