package xds_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/identity"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// What fuzz targets of proxies' streams share: the bytes of an input are a sequence of operations, each with two
// arguments that choose from few words, some of which no proxy should say.

const mostOps = 48

// eachOp plays an input.
func eachOp(raw []byte, play func(op, a, b byte)) {
	for n := 0; n < mostOps && len(raw) >= 3; n++ {
		play(raw[0], raw[1], raw[2])
		raw = raw[3:]
	}
}

func pick[T any](from []T, at byte) T { return from[int(at)%len(from)] }

var saidTypes = []string{
	lds, cds, ecds, sds, "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
	"type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
	"type.googleapis.com/envoy.service.runtime.v3.Runtime", "", "x", strings.Repeat("t", 300),
}

var saidNames = []string{"*", "", "x", ".", "identity_cert:secret:default", "mesh_ca:secret:default",
	"kri_mtp_default___p_", "localhost_8080", strings.Repeat("n", 5000), "a\x1b[2J", "ü"}

var saidTexts = []string{"no", "", "x: no\n", strings.Repeat("a line\n", 2000), strings.Repeat("ü", 1000)}

func namesOf(a, b byte) []string {
	var out []string
	for i := range 8 {
		if b&(1<<i) != 0 {
			out = append(out, saidNames[(int(a)+i)%len(saidNames)])
		}
	}
	return out
}

func saidNode(b byte) *corev3.Node {
	odd, _ := structpb.NewStruct(map[string]any{xds.NamespaceKey: []any{1, nil}})
	switch b % 12 {
	case 0, 1, 2:
		return nodeOf("evil", "")
	case 3:
		return nil
	case 4:
		return &corev3.Node{}
	case 5:
		return &corev3.Node{Id: "x"}
	case 6:
		return &corev3.Node{Id: pick([]string{".", "..", "default.", ".ingress", "default.evil.x",
			strings.Repeat("a", 400) + ".b"}, b/12)}
	case 7:
		return &corev3.Node{Id: "default.evil", Metadata: odd, UserAgentVersionType: &corev3.Node_UserAgentBuildVersion{}}
	case 8:
		return &corev3.Node{Id: "default.evil", UserAgentName: "gRPC Go",
			UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: strings.Repeat("ü", 63)}}
	case 9:
		return nodeOf("evil", strings.Repeat("n", 100))
	case 10:
		return &corev3.Node{Id: "default.evil",
			Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{xds.NamespaceKey: nil}}}
	}
	return nodeOf("evil", "other")
}

// fuzzedZone is a real xDS server over stores in memory, with a Dataplane of its own for the evil proxy and one for a
// sound one.
type fuzzedZone struct {
	t        *testing.T
	server   *zoneServer
	target   string
	journal  *accesslog.Journal
	registry *prometheus.Registry
	stop     func()
}

// fuzzedBox is made once for all inputs: it is on disk.
func fuzzedBox(f *testing.F) *secrets.Box {
	f.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: f.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	return box
}

var sockets atomic.Uint64

func startFuzzed(t *testing.T, box *secrets.Box) *fuzzedZone {
	t.Helper()
	name := fmt.Sprintf("causeway-fuzz-xds-%d-%d", os.Getpid(), sockets.Add(1)) // no port is used up, as fuzzing would
	l, err := net.Listen("unix", "@"+name)
	must(t, err)
	z := &fuzzedZone{t: t, target: "unix-abstract:" + name, journal: accesslog.NewJournal(time.Now(), 64),
		registry: prometheus.NewRegistry()}
	z.server = &zoneServer{t: t, store: store.NewMemory(), status: store.NewMemory(),
		keeper: secrets.NewKeeper(store.NewMemory(), box)}
	authorities := identity.NewAuthorities(identity.Config{Keeper: z.server.keeper, Zone: home.Zone})
	log := slog.New(slog.DiscardHandler)
	// Without a guard: a panic is the end of the process, and what was looked for.
	proxies := xds.New(xds.Config{Registerer: z.registry, Store: z.server.store, Status: z.server.status, Home: home,
		Instance: "test", Log: log, Authorities: authorities})
	admission := xds.NewAdmission(xds.AdmissionConfig{Store: z.server.store, Identity: authorities.Expect, Log: log})
	ctx, cancel := context.WithCancel(context.Background())
	collector := accesslog.NewCollector(ctx, accesslog.CollectorConfig{
		Store: z.server.store, Admit: admission.Admit, Identify: admission.Identify, Journal: z.journal,
		Registerer: z.registry,
	})
	done := make(chan error, 2)
	go func() { done <- proxies.Run(ctx) }()
	go func() { done <- xds.Serve(ctx, l, nil, proxies, admission, collector) }()
	z.stop = func() {
		cancel()
		for range 2 {
			must(t, <-done)
		}
	}
	z.server.trust()
	z.server.dataplane("evil", httpInbound)
	z.server.dataplane("sound", httpInbound)
	z.server.permission("p", "evil", "spiffe://default.zone-1.mesh.local/ns/a/sa/b")
	return z
}

func (z *fuzzedZone) dial() *grpc.ClientConn {
	conn, err := grpc.NewClient(z.target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(z.t, err)
	return conn
}

// write changes what the evil proxy is told.
func (z *fuzzedZone) write(a, b byte) {
	switch a % 6 {
	case 0:
		z.server.dataplane("evil", fmt.Sprintf(`{"name": "main", "port": %d, "servicePort": 9080, "protocol": "http"}`,
			1000+int(b)))
	case 1:
		z.server.delete(resources.TypeDataplane, "evil")
	case 2:
		z.server.permission("p", "evil", fmt.Sprintf("spiffe://default.zone-1.mesh.local/ns/a/sa/s%d", b))
	case 3:
		z.server.delete(resources.TypeMeshTrafficPermission, "p")
	case 4:
		z.server.dataplane("evil", `{"name": "main", "port": 8080, "servicePort": 9080, "protocol": "tcp"}`)
	case 5:
		z.server.put(resources.TypeMeshService, "s", fmt.Sprintf(`{"selector": {"dataplaneTags": {"app": "evil"}}, "ports": [{"port": %d, "targetPort": 8080}]}`, 1+int(b)), nil)
	}
}

// toll checks what an input costs: time, memory that is allocated, goroutines that stay.
type toll struct {
	began      time.Time
	allocated  uint64
	goroutines int
}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func newToll() *toll {
	return &toll{began: time.Now(), allocated: allocated(), goroutines: runtime.NumGoroutine()}
}

// check is called when everything that the input started has been stopped.
func (c *toll) check(t *testing.T) {
	t.Helper()
	if took := time.Since(c.began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	if n := allocated() - c.allocated; n > 512<<20 {
		t.Errorf("it allocated %d bytes", n)
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > c.goroutines; <-time.After(
		time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 64<<10)
			t.Fatalf("%d goroutines are left of %d:\n%s", runtime.NumGoroutine()-c.goroutines, c.goroutines,
				stacks[:runtime.Stack(stacks, true)])
		}
	}
}
