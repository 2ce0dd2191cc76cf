package zone_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// TestInboundCircuitBreaker: a MeshCircuitBreaker in rules limits what the application takes of all clients: requests
// that wait for a connection are answered with 503, and connections over the limit are closed.
func TestInboundCircuitBreaker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := make(chan struct{})
	w.handler("slow", "slow", func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-release
		}
		_, _ = io.WriteString(rw, "answered")
	})
	w.endpoint("lines", "tcp", holding(t))
	w.allowAll()
	ports, e := w.caller("caller", "{kind: MeshService, name: slow}", "{kind: MeshService, name: lines}")
	eventually(t, "the service to answer", func() bool { code, _ := plain(ports[0], "/"); return code == http.StatusOK })
	w.apply(`{type: MeshCircuitBreaker, mesh: default, name: limits, spec: {rules: [{default: {connectionLimits: {maxConnections: 1, maxPendingRequests: 1}}}]}}`)

	// One is with the application, one waits for its connection, and the others are too many.
	var requests sync.WaitGroup
	var tooMany atomic.Int64
	eventually(t, "a request over the limits to be answered with 503", func() bool {
		requests.Go(func() {
			switch code, _ := plain(ports[0], "/slow"); code {
			case http.StatusOK:
			case http.StatusServiceUnavailable:
				tooMany.Add(1)
			default:
				t.Errorf("a request that waits: %d", code)
			}
		})
		return tooMany.Load() > 0
	})
	close(release)
	requests.Wait()
	eventually(t, "requests below the limits to be answered", func() bool { code, _ := plain(ports[0], "/"); return code == http.StatusOK })

	// Whether the first is with the application is known when that answers: until then, it may be the one that is closed.
	var first net.Conn
	eventually(t, "a first connection to be answered", func() bool {
		first = dialled(t, ports[1])
		if readAnswer(t, first) == nil {
			return true
		}
		_ = first.Close()
		return false
	})
	defer first.Close()
	eventually(t, "a second connection to be closed", func() bool {
		second := dialled(t, ports[1])
		defer second.Close()
		return errors.Is(readAnswer(t, second), io.EOF)
	})
	w.remove(resources.TypeMeshCircuitBreaker, "limits")
	eventually(t, "two connections to be there", func() bool {
		second := dialled(t, ports[1])
		defer second.Close()
		return readAnswer(t, second) == nil
	})
	e.refusedNothing()
}

func dialled(t *testing.T, port int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	must(t, err)
	_, err = io.WriteString(conn, "hello")
	must(t, err)
	return conn
}

// readAnswer reads the byte with which holding answers, and returns why there is none.
func readAnswer(t *testing.T, conn net.Conn) error {
	t.Helper()
	must(t, conn.SetReadDeadline(time.Now().Add(time.Second)))
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err
}

// holding is an application that answers what comes with a byte and keeps the connection.
func holding(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := conn.Read(make([]byte, 5)); err != nil {
					return
				}
				_, _ = io.WriteString(conn, "!")
				_, _ = io.Copy(io.Discard, conn)
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}
