package xds_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone/checkpoint"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/xds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	cds  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	lds  = "type.googleapis.com/envoy.config.listener.v3.Listener"
	sds  = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	ecds = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
)

const patience = 30 * time.Second

var home = resources.Home{Zone: "zone-1", SystemNamespace: resources.DefaultSystemNamespace}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// zoneServer is xDS over stores in memory.
type zoneServer struct {
	t             *testing.T
	store, status *store.Memory
	keeper        *secrets.Keeper
	box           *secrets.Box
	checkpoint    string // file
	log           *slog.Logger
	address       string
	registry      *prometheus.Registry
	tracer        trace.Tracer
	proxies       *xds.Proxies
	stop          func()
	ahead         atomic.Int64 // of the clock, in nanoseconds
}

func newZoneServer(t *testing.T) *zoneServer {
	t.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	z := &zoneServer{
		t: t, store: store.NewMemory(), status: store.NewMemory(), keeper: secrets.NewKeeper(store.NewMemory(), box),
		box:        box,
		checkpoint: filepath.Join(t.TempDir(), "holdings.sealed"), log: slog.New(slog.DiscardHandler),
	}
	z.start()
	t.Cleanup(func() { z.stop() })
	return z
}

// start runs the server; after stop it is a new process over the same stores.
func (z *zoneServer) start() {
	z.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(z.t, err)
	z.address = listener.Addr().String()
	z.registry = prometheus.NewRegistry()
	held := checkpoint.Open(checkpoint.Config{Path: z.checkpoint, Box: z.box, Log: z.log, Registerer: z.registry})
	proxies := xds.New(xds.Config{
		Registerer: z.registry, Tracer: z.tracer, Checkpoint: held,
		Store: z.store, Status: z.status, Home: home, Instance: "test", Log: z.log,
		Now:         func() time.Time { return time.Now().Add(time.Duration(z.ahead.Load())) },
		Authorities: identity.NewAuthorities(identity.Config{Keeper: z.keeper, Zone: home.Zone}),
	})
	z.proxies = proxies
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 3)
	go func() { done <- proxies.Run(ctx) }()
	go func() { done <- held.Run(ctx) }()
	go func() { done <- xds.Serve(ctx, listener, nil, proxies, nil) }()
	z.stop = func() {
		cancel()
		for range 3 {
			must(z.t, <-done)
		}
		held.Close()
		z.stop = func() {}
	}
}

// eventually waits for what is to come.
func (z *zoneServer) eventually(what string, is func() bool) {
	z.t.Helper()
	for deadline := time.Now().Add(patience); !is(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			z.t.Fatalf("never happened: %s", what)
		}
	}
}

func (z *zoneServer) put(t resources.Type, name, spec string, labels map[string]string) {
	z.t.Helper()
	z.putIn("", t, name, spec, labels)
}

func (z *zoneServer) putIn(namespace string, t resources.Type, name, spec string, labels map[string]string) {
	z.t.Helper()
	s, err := resources.NewSpec(t, []byte(spec))
	must(z.t, err)
	r := home.Labelled(&resources.Resource{Key: resources.Key{Type: t, Mesh: "default", Namespace: namespace, Name: name},
		Spec: s, Labels: labels})
	_, err = z.store.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: r}}})
	must(z.t, err)
}

func (z *zoneServer) delete(t resources.Type, name string) {
	z.t.Helper()
	_, err := z.store.Apply(context.Background(),
		store.Batch{Ops: []store.Op{{Delete: resources.Key{Type: t, Mesh: "default", Name: name}}}})
	must(z.t, err)
}

func (z *zoneServer) dataplane(name string, inbounds string) {
	z.t.Helper()
	z.put(resources.TypeDataplane, name, fmt.Sprintf(`{"networking": {"address": "127.0.0.1", "inbound": [%s]}}`,
		inbounds), map[string]string{"app": name})
}

const httpInbound = `{"name": "main", "port": 8080, "servicePort": 9080, "protocol": "http"}`

// permission allows a SPIFFE ID on the Dataplanes with a label app.
func (z *zoneServer) permission(name, app, spiffeID string) {
	z.t.Helper()
	z.put(resources.TypeMeshTrafficPermission, name, fmt.Sprintf(`{"targetRef": {"kind": "Dataplane", "labels": {"app": %q}}, "rules": [{"default": {"allow": [
		{"spiffeId": {"type": "Exact", "value": %q}}]}}]}`, app, spiffeID), nil)
}

func (z *zoneServer) trust() {
	z.t.Helper()
	authority, err := identity.NewAuthorities(identity.Config{Keeper: z.keeper, Zone: home.Zone}).For("default")
	must(z.t, err)
	spec, err := resources.NewSpecOf(resources.TypeMeshTrust, &resources.MeshTrust{
		TrustDomain: authority.TrustDomain().Name(), CABundles: []resources.CABundle{{Type: resources.CABundlePEM,
			PEM: &resources.PEMRef{Value: string(authority.PEM())}}},
	})
	must(z.t, err)
	z.put(resources.TypeMeshTrust, "identity-zone-1", string(spec.JSON()), nil)
}

// insight waits until the DataplaneInsight of a Dataplane is as the condition says.
func (z *zoneServer) insight(dataplane string, condition func(*meshpb.DataplaneInsight) bool) *meshpb.DataplaneInsight {
	z.t.Helper()
	var last *meshpb.DataplaneInsight
	for end := time.After(patience); ; {
		_, next := z.status.Changed()
		if r := z.status.Snapshot().Get(resources.Key{Type: resources.TypeDataplaneInsight, Mesh: "default",
			Name: dataplane}); r != nil {
			var err error
			last, err = resources.SpecAs[meshpb.DataplaneInsight](r)
			must(z.t, err)
			if condition(last) {
				return last
			}
		}
		select {
		case <-next:
		case <-end:
			z.t.Fatalf("the insight stays %v", last)
		}
	}
}

func nodeOf(dataplane, namespace string) *corev3.Node {
	metadata, _ := structpb.NewStruct(map[string]any{xds.NamespaceKey: namespace})
	return &corev3.Node{Id: xds.NodeID("default", dataplane), Metadata: metadata}
}

// deltaClient is a proxy that speaks delta ADS and acknowledges by itself.
type deltaClient struct {
	received[*discovery.DeltaDiscoveryResponse]
	stream   discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	refuse   bool   // answer with an error from now on
	refuses  string // answer so to what contains a resource with this in its name
	versions map[string]map[string]string
}

func (z *zoneServer) dial() (discovery.AggregatedDiscoveryServiceClient, func()) {
	z.t.Helper()
	conn, err := grpc.NewClient(z.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(z.t, err)
	return discovery.NewAggregatedDiscoveryServiceClient(conn), func() { _ = conn.Close() }
}

func (z *zoneServer) delta() *deltaClient {
	z.t.Helper()
	api, closeConn := z.dial()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := api.DeltaAggregatedResources(ctx)
	must(z.t, err)
	c := &deltaClient{stream: stream, versions: map[string]map[string]string{}}
	c.follow(z.t, stream.Recv, cancel, closeConn)
	return c
}

// received is what arrives on a client's stream, until its test closes it.
type received[R any] struct {
	t         *testing.T
	responses chan R
	err       chan error
	close     func()
}

// follow takes in what arrives. To close, end ends the stream and after is called behind it.
func (r *received[R]) follow(t *testing.T, receive func() (R, error), end, after func()) {
	r.t, r.responses, r.err = t, make(chan R, 100), make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			response, err := receive()
			if err != nil {
				r.err <- err
				return
			}
			r.responses <- response
		}
	}()
	r.close = sync.OnceFunc(func() {
		end()
		<-ended
		after()
	})
	t.Cleanup(r.close)
}

func (c *deltaClient) send(r *discovery.DeltaDiscoveryRequest) {
	c.t.Helper()
	must(c.t, c.stream.Send(r))
}

// subscribe asks for names of a type; the node goes with it.
func (c *deltaClient) subscribe(node *corev3.Node, typeURL string, names ...string) {
	c.t.Helper()
	c.send(&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: typeURL, ResourceNamesSubscribe: names})
}

// next is the next response, answered, and its resources by name.
func (c *deltaClient) next(typeURL string) *discovery.DeltaDiscoveryResponse {
	c.t.Helper()
	r := c.any()
	if r.TypeUrl != typeURL {
		c.t.Fatalf("got a response of type %s: %v, removed %v; want type %s", r.TypeUrl, names(r),
			r.RemovedResources, typeURL)
	}
	return r
}

// any is the next response of whatever type, answered.
func (c *deltaClient) any() *discovery.DeltaDiscoveryResponse {
	c.t.Helper()
	select {
	case r := <-c.responses:
		c.answer(r)
		return r
	case err := <-c.err:
		c.t.Fatalf("the stream ended: %v", err)
	case <-time.After(patience):
		c.t.Fatal("no response")
	}
	return nil
}

// answer takes a response, or refuses it.
func (c *deltaClient) answer(r *discovery.DeltaDiscoveryResponse) {
	c.t.Helper()
	answer := &discovery.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce}
	if c.refuse || c.refuses != "" && slices.ContainsFunc(names(r), func(name string) bool { return strings.Contains(name, c.refuses) }) {
		answer.ErrorDetail = &status.Status{Code: 3, Message: "no, thank you"}
	}
	c.send(answer)
	if c.versions[r.TypeUrl] == nil {
		c.versions[r.TypeUrl] = map[string]string{}
	}
	for _, x := range r.Resources {
		c.versions[r.TypeUrl][x.Name] = x.Version
	}
	for _, name := range r.RemovedResources {
		delete(c.versions[r.TypeUrl], name)
	}
}

// nothing says that no response came until now.
func (c *deltaClient) nothing() {
	c.t.Helper()
	select {
	case r := <-c.responses:
		c.t.Fatalf("got a response of type %s: %v, removed %v; want none", r.TypeUrl, names(r), r.RemovedResources)
	default:
	}
}

// fails waits for the stream's end.
func (c *deltaClient) fails() error {
	c.t.Helper()
	select {
	case err := <-c.err:
		return err
	case <-time.After(patience):
		c.t.Fatal("the stream goes on")
		return nil
	}
}

func names(r *discovery.DeltaDiscoveryResponse) []string {
	var out []string
	for _, x := range r.Resources {
		out = append(out, x.Name)
	}
	return out
}
