package xds_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
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
	for start := time.Now(); !is(); <-time.After(min(max(time.Since(start)/20, 5*time.Millisecond), 50*time.Millisecond)) {
		if time.Since(start) > patience {
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
	key := resources.Key{Type: t, Mesh: "default", Namespace: namespace, Name: name}
	if d, _ := resources.Lookup(t); d.Scope == resources.ScopeGlobal {
		key.Mesh = ""
	}
	r := home.Labelled(&resources.Resource{Key: key, Spec: s, Labels: labels})
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
