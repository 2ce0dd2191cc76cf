package zone_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/resources"
)

// sent is a caller with three services outside the mesh, which need no proxies of their own: web has three endpoints,
// streams one that speaks gRPC, and lines one that holds connections beside one where nobody listens.
type sent struct {
	*world
	*envoy
	web, streams, lines int
	calls               *rawGRPC
}

func newSent(t *testing.T) *sent {
	s := &sent{world: newWorld(t), calls: newRawGRPC(t)}
	var web []string
	for _, name := range []string{"a", "b", "c"} {
		web = append(web, fmt.Sprintf("{address: 127.0.0.1, port: %d}", behaving(t, name)))
	}
	for _, one := range []struct{ name, protocol, endpoints string }{
		{"web", "http", strings.Join(web, ", ")},
		{"streams", "grpc", fmt.Sprintf("{address: 127.0.0.1, port: %d}", s.calls.port)},
		{"lines", "tcp", fmt.Sprintf("{address: 127.0.0.1, port: %d}, {address: 127.0.0.1, port: %d}", holding(t), freePort(t))},
	} {
		s.apply(fmt.Sprintf("{type: MeshExternalService, mesh: default, name: %s, spec: {match: {port: 80, protocol: %s}, endpoints: [%s]}}",
			one.name, one.protocol, one.endpoints))
	}
	ports, e := s.caller("caller", "{kind: MeshExternalService, name: web}", "{kind: MeshExternalService, name: streams}",
		"{kind: MeshExternalService, name: lines}")
	s.envoy, s.web, s.streams, s.lines = e, ports[0], ports[1], ports[2]
	eventually(t, "the services to answer", func() bool { return s.code("/ok") == http.StatusOK && s.call("ok") == codes.OK })
	return s
}

func (s *sent) code(path string, headers ...string) int {
	code, _ := plain(s.web, path, headers...)
	return code
}

// call makes a call to streams that is told what to do.
func (s *sent) call(do string, headers ...string) codes.Code {
	return grpcstatus.Code(s.calls.call(s.streams, append(headers, "x-do", do, "x-id", newID())...))
}

// once asks for what fails at first, and reports whether a second attempt answered in a time.
func (s *sent) once(query string, least, most time.Duration, headers ...string) bool {
	start := time.Now()
	code := s.code("/once?"+query, append(headers, "x-id", newID())...)
	took := time.Since(start)
	return code == http.StatusOK && took >= least && took < most
}

// holds opens a connection to lines, and reports whether it gets through and lasts.
func (s *sent) holds() bool {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.lines))
	if err != nil {
		return false
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "hello")
	_ = conn.SetReadDeadline(time.Now().Add(400 * time.Millisecond))
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return false
	}
	_, err = conn.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// counter adds up a statistic of a service's cluster. Some are not there until they count something.
func (s *sent) counter(service, name string) (sum int) {
	for _, v := range s.stats("^cluster\\..*_" + service + "_.*" + name + "$") {
		n, err := strconv.Atoi(v)
		must(s.world.t, err)
		sum += n
	}
	return sum
}

// rises reports whether a statistic rises while do is done.
func (s *sent) rises(service, name string, do func()) func() bool {
	return func() bool {
		before := s.counter(service, name)
		do()
		return s.counter(service, name) > before
	}
}

// among returns who answers a number of requests, one after another.
func (s *sent) among(n int) (who []string) {
	for range n {
		_, body := plain(s.web, "/ok")
		who = append(who, body)
	}
	return who
}

func (s *sent) many(n int, path string) func() {
	return func() {
		for range n {
			s.code(path)
		}
	}
}

// sentRow is a conf, and what holds with it and not without.
type sentRow struct {
	name string
	typ  resources.Type
	conf string
	seen func() bool
}

// TestPoliciesOnWhatIsSent: each field of policies on what a workload sends does in a real Envoy what the page says.
func TestPoliciesOnWhatIsSent(t *testing.T) {
	t.Parallel()
	s := newSent(t)
	for _, rows := range [][]sentRow{s.retries(), s.callRetries(), s.breakers(), s.outliers(), s.health(), s.hashes(), s.timeouts()} {
		for _, row := range rows {
			eventually(t, row.name+" not to be there without the policy", func() bool { return !row.seen() })
			s.policy(row.typ, row.conf)
			eventually(t, row.name, row.seen)
			s.remove(row.typ, "p")
			eventually(t, row.name+" to be over", func() bool { return !row.seen() })
		}
	}
	s.connectionErrors()
	s.refusedNothing()
}

func (s *sent) policy(typ resources.Type, conf string) {
	s.apply(fmt.Sprintf("{type: %s, mesh: default, name: p, spec: {to: [{targetRef: {kind: Mesh}, default: {%s}}]}}", typ, conf))
}

// connectionErrors shows the detector of connections that fail, which a mesh has by default, too.
func (s *sent) connectionErrors() {
	ejected := s.rises("lines", "outlier_detection.ejections_enforced_consecutive_local_origin_failure", func() {
		for range 4 {
			s.holds()
		}
	})
	s.policy(resources.TypeMeshCircuitBreaker, "outlierDetection: {disabled: true}")
	eventually(s.world.t, "connections that fail to count for nothing", func() bool {
		once := ejected() // the proxy may have the policy only from the second look on
		return !once && !ejected()
	})
	s.policy(resources.TypeMeshCircuitBreaker, `outlierDetection: {interval: 100ms, baseEjectionTime: 50ms, maxEjectionTime: 50ms, healthyPanicThreshold: 0, maxEjectionPercent: 100,
  splitExternalAndLocalErrors: true, detectors: {localOriginFailures: {consecutive: 1}}}`)
	eventually(s.world.t, "connections that fail to count", ejected)
}
