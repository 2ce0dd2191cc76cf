package kds

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/resources"
)

// Shared by the fuzz targets of sessions: the bytes of an input are a sequence of operations, each with two arguments
// that choose from a few words, some of which are invalid.

// script reads operations.
type script struct {
	rest []byte
	at   int
}

// mostOps bounds the operations of an input that are played.
const mostOps = 48

func (s *script) next() (op, a, b byte, ok bool) {
	if len(s.rest) < 3 || s.at == mostOps {
		return 0, 0, 0, false
	}
	op, a, b = s.rest[0], s.rest[1], s.rest[2]
	s.rest = s.rest[3:]
	s.at++
	return op, a, b, true
}

var saidTypes = []string{
	string(resources.TypeMeshTrafficPermission), string(resources.TypeMeshService), string(resources.TypeDataplane),
	string(resources.TypeMesh),
	string(resources.TypeDataplaneInsight), string(resources.TypeZone), string(resources.TypeMeshHTTPRoute),
	string(resources.TypeSecret), "Nobody", "", "a\x1b[2J", strings.Repeat("T", 300),
}

var saidNames = []string{
	"p.default", "own.default", "other.default", "q.default", "default.", "a.b.c", "x", "", ".", "..", ".default",
	"a b.default", "a\nb.default", "ü.default",
	strings.Repeat("a", 600) + ".default", strings.Repeat(".", 400),
}

var saidTexts = []string{"no", "p.default: no", "x: no", ": no", "\n\n", "own is bad", "p.default: a\np.default: b\nx",
	strings.Repeat("a line\n", 3000), strings.Repeat("p", 10_000)}

var saidVersions = []string{"", "1 list", "2", "3 list more", "4 resume", "5 resume more", "99999999999999999999999",
	"-1", "list", "6 list resume more age=9 trace=x", strings.Repeat("7 ", 3000)}

func pick[T any](from []T, at byte) T { return from[int(at)%len(from)] }

// saidHave returns the names that a peer claims to have: one bit each.
func saidHave(a, b byte) map[string]string {
	have := map[string]string{}
	for i := range 8 {
		if b&(1<<i) != 0 {
			have[saidNames[(int(a)+i*3)%len(saidNames)]] = "1"
		}
	}
	return have
}

// saidItem returns a resource of a type, valid or not; wrote is the name under which a valid one is stored.
func saidItem(t testing.TB, direction exchange.Direction, zone, typ string, b byte) (item *discovery.Resource,
	wrote string) {
	switch b % 8 {
	case 0:
		return &discovery.Resource{Name: pick(saidNames, b/8), Version: "1"}, ""
	case 1:
		return &discovery.Resource{Name: pick(saidNames, b/8),
			Resource: &anypb.Any{TypeUrl: "type.googleapis.com/nothing", Value: []byte{b, 1, 2}}}, ""
	case 2:
		return &discovery.Resource{Name: pick(saidNames, b/8),
			Resource: &anypb.Any{TypeUrl: resourceTypeURL, Value: []byte{10, 255, b}}}, ""
	case 3:
		return &discovery.Resource{Name: "p.default", Version: strings.Repeat("v", int(b)*8),
			Resource: &anypb.Any{TypeUrl: resourceTypeURL}}, ""
	case 4:
		return &discovery.Resource{}, ""
	}
	if typ != string(resources.TypeMeshTrafficPermission) {
		return &discovery.Resource{Name: "p.default"}, ""
	}
	name := fmt.Sprintf("good-%d", b/8)
	key, spec := permission(name)
	home, audience := globalHome, &exchange.Audience{Direction: exchange.GlobalToZone, Zone: zone,
		Features: exchange.OwnFeatures()}
	if direction == exchange.ZoneToGlobal {
		home, audience = zoneHome(zone), &exchange.Audience{Direction: exchange.ZoneToGlobal, Zone: zone,
			Features: exchange.OwnFeatures()}
	}
	out, err := exchange.NewMapping().Outbound(written(t, home, key, spec), audience)
	if err != nil {
		t.Fatal(err)
	}
	item, err = Encode(out)
	if err != nil {
		t.Fatal(err)
	}
	return item, name
}

func saidNode(id string, b byte) *corev3.Node {
	switch b % 5 {
	case 0:
		return nil
	case 1:
		return &corev3.Node{Id: id}
	case 2:
		return &corev3.Node{Id: id, Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"version": structpb.NewNullValue(), "features": structpb.NewNumberValue(1), "config": nil}}}
	case 3:
		return nodeOf(id, Peer{Features: plainFeatures, Config: strings.Repeat("c", 1000)})
	}
	return nodeOf(id, Peer{Features: exchange.OwnFeatures()})
}

// encodable reports whether gRPC sends a message at all: Protobuf refuses invalid UTF-8.
func encodable(m proto.Message) bool {
	_, err := proto.Marshal(m)
	return err == nil
}

var sockets atomic.Uint64

// listenSomewhere listens without using up ports, as fuzzing would.
func listenSomewhere(t testing.TB) (l net.Listener, target string) {
	t.Helper()
	name := fmt.Sprintf("causeway-fuzz-%d-%d", os.Getpid(), sockets.Add(1))
	l, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	return l, "unix-abstract:" + name
}

// toll checks the cost of an input: time, allocated memory, goroutines that stay.
type toll struct {
	began      time.Time
	allocated  uint64
	goroutines int
}

const (
	mostTime  = 20 * time.Second
	mostBytes = 512 << 20
)

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func newToll() *toll {
	return &toll{began: time.Now(), allocated: allocated(), goroutines: runtime.NumGoroutine()}
}

// check compares the cost. Call it when everything that the input started has been stopped.
func (c *toll) check(t *testing.T) {
	t.Helper()
	if took := time.Since(c.began); took > mostTime {
		t.Errorf("it took %s", took)
	}
	if n := allocated() - c.allocated; n > mostBytes {
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

// inbox holds the messages of a stream, which its own goroutine reads.
type inbox[M any] struct {
	mu    sync.Mutex
	queue []M           // guarded by mu
	ended bool          // guarded by mu
	news  chan struct{} // room for one
	done  chan struct{} // closed when nothing more comes
}

func readInto[M any](receive func() (M, error)) *inbox[M] {
	in := &inbox[M]{news: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		defer close(in.done)
		for {
			m, err := receive()
			in.mu.Lock()
			if err != nil {
				in.ended = true
			} else {
				in.queue = append(in.queue, m)
			}
			in.mu.Unlock()
			select {
			case in.news <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return in
}

// take waits briefly for the next message that fits.
func (in *inbox[M]) take(within time.Duration, fits func(M) bool) (m M, ok bool) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		in.mu.Lock()
		for i := range in.queue {
			if fits(in.queue[i]) {
				m = in.queue[i]
				in.queue = append(in.queue[:i:i], in.queue[i+1:]...)
				in.mu.Unlock()
				return m, true
			}
		}
		ended := in.ended
		in.mu.Unlock()
		if ended {
			return m, false
		}
		select {
		case <-in.news:
		case <-timer.C:
			return m, false
		}
	}
}

func (in *inbox[M]) over() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ended
}

// serveOn serves until stop is called.
func serveOn(t testing.TB, l net.Listener, register func(grpc.ServiceRegistrar)) (stop func()) {
	t.Helper()
	server := grpc.NewServer(ServerOptions()...)
	register(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(Listener(l)) }()
	return func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

// patienceOfFuzz is how long a sequence waits for a message that may not come.
const patienceOfFuzz = 20 * time.Millisecond

// withoutEnd returns a context that the test ends.
func withoutEnd() (context.Context, context.CancelFunc) {
	return context.WithCancel(context.Background())
}
