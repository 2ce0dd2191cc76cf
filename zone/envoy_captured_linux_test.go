package zone_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/capture"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone"
)

// proxyUser runs the Envoys of machines with capture.
const proxyUser = 5678

// host is a machine with a network of its own. All its work is done on one thread.
type host struct {
	w    *world
	work chan func()
	tid  int
	xds  string // where the zone is reached from it
}

// newHost makes a machine, nil where this one lets us make none. The zone is reached on its loopback.
func newHost(t *testing.T, w *world) *host {
	t.Helper()
	h := &host{w: w, work: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		h.tid = unix.Gettid()
		ready <- err
		for f := range h.work {
			f()
		}
	}()
	t.Cleanup(func() { close(h.work) })
	if err := <-ready; err != nil {
		t.Logf("this machine lets us make no network namespaces: %v", err) // which is no failure of the server
		return nil
	}
	h.ip("link set lo up")
	h.xds = h.listen("127.0.0.1:0", 0, func(c net.Conn) {
		to, err := net.Dial("tcp", w.address) // on another thread, in the network of the zone
		if err != nil {
			return
		}
		defer to.Close()
		go func() { _, _ = io.Copy(to, c); _ = to.Close() }()
		_, _ = io.Copy(c, to)
	})
	return h
}

// as runs f on the machine as a user.
func (h *host) as(user int, f func()) {
	done := make(chan struct{})
	h.work <- func() {
		defer close(done)
		_, _ = unix.SetfsuidRetUid(user)
		defer func() { _, _ = unix.SetfsuidRetUid(0) }()
		f()
	}
	<-done
}

func (h *host) ip(commands ...string) {
	h.w.t.Helper()
	for _, c := range commands {
		h.as(0, func() {
			if out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput(); err != nil {
				h.w.t.Errorf("ip %s: %v: %s", c, err, out)
			}
		})
	}
}

// listen runs handle for each connection to an address of the machine, and returns the address.
func (h *host) listen(address string, user int, handle func(net.Conn)) (at string) {
	h.w.t.Helper()
	h.as(user, func() {
		l, err := net.Listen("tcp", address)
		if err != nil {
			h.w.t.Error(err)
			return
		}
		at = l.Addr().String()
		h.w.t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() { defer c.Close(); handle(c) }()
			}
		}()
	})
	return at
}

// dial connects as a user of the machine does.
func (h *host) dial(user int, address string) (c net.Conn, err error) {
	h.as(user, func() {
		c, err = (&net.Dialer{Timeout: 5 * time.Second}).DialContext(context.Background(), "tcp", address)
	})
	return c, err
}

// asks returns the status of an application's request in the clear; 0 without one.
func (h *host) asks(address string) int {
	c, err := h.dial(applicationUser, address)
	if err != nil {
		return 0
	}
	defer c.Close()
	return statusOn(c, address)
}

// capture installs the rules, as causeway-zone capture install does.
func (h *host) capture(s capture.Settings) {
	h.w.t.Helper()
	s.ProxyUser = proxyUser
	h.as(0, func() {
		if _, err := capture.Install(s); err != nil {
			h.w.t.Error(err)
		}
	})
}

// envoy runs an Envoy on the machine, as the proxy's user, until the test ends.
func (h *host) envoy(cfg zone.BootstrapConfig) {
	t := h.w.t
	t.Helper()
	dir, err := os.MkdirTemp("", "captured") // which the proxy's user may enter
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o711))
	cfg.XDSAddress, cfg.AdminAddress = h.xds, "127.0.0.1:9901"
	bootstrap, err := zone.Bootstrap(cfg)
	must(t, err)
	file, binary := filepath.Join(dir, "envoy.yaml"), filepath.Join(dir, "envoy")
	linkEnvoy(t, binary)
	must(t, os.WriteFile(file, bootstrap, 0o600))
	must(t, os.Chown(file, proxyUser, proxyUser))
	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	cmd := exec.Command(binary, "-c", file, "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "warning",
		"--drain-time-s", "1")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: proxyUser, Gid: proxyUser}}
	h.as(0, func() { err = cmd.Start() })
	must(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s's log:\n%s", cfg.Dataplane, text)
		}
	})
}

// web answers each request with 200.
func web(c net.Conn) {
	for requests := bufio.NewReader(c); ; {
		if _, err := http.ReadRequest(requests); err != nil {
			return
		}
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
			return
		}
	}
}

// The addresses of two machines with a wire between them.
const (
	backend4, backend6 = "10.98.0.1", "fd98::1"
	caller4, caller6   = "10.98.0.2", "fd98::2"
)

// newHosts makes two machines with a wire between them: the backend's and its caller's.
func newHosts(t *testing.T, w *world) (backend, caller *host) {
	t.Helper()
	if backend = newHost(t, w); backend == nil {
		return nil, nil
	}
	caller = newHost(t, w)
	backend.ip(fmt.Sprintf("link add wire type veth peer name wire netns %d", caller.tid))
	for h, at := range map[*host][2]string{backend: {backend4, backend6}, caller: {caller4, caller6}} {
		h.ip("addr add "+at[0]+"/24 dev wire", "addr add "+at[1]+"/64 dev wire nodad", "link set wire up",
			"route add default dev wire", "-6 route add default dev wire")
	}
	return backend, caller
}

var captured = capture.Settings{InboundPort: capture.InboundPort, OutboundPort: capture.OutboundPort}

// TestCapturedMachines: neither application knows of a proxy. One dials the other's name, it goes by mutual TLS, and a
// permission decides; past the proxies there is no way.
func TestCapturedMachines(t *testing.T) {
	w := newWorld(t)
	backend, caller := newHosts(t, w)
	if backend == nil {
		return
	}
	backend.listen(":8080", applicationUser, web)
	backend.listen(backend4+":9090", applicationUser, web) // on the machine's address only
	backend.listen(":9999", applicationUser, web)          // of no inbound
	if got := caller.asks(backend4 + ":8080"); got != 200 {
		t.Fatalf("before the mesh: %d", got)
	}
	for _, name := range []string{"backend", "caller"} {
		at, inbounds := caller4, `[{port: 1, name: none, protocol: tcp}]`
		if name == "backend" {
			at, inbounds = backend4, `[{port: 8080, name: main, protocol: http}, {port: 9090, name: own, protocol: http, serviceAddress: 10.98.0.1}]`
		}
		w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: %s, labels: {app: %s, kuma.io/workload: %s}, networking: {address: %s, inbound: %s,
  transparentProxying: {redirectPortInbound: 15006, redirectPortOutbound: 15001, ipFamilyMode: DualStack}}}`, name, name, name, at, inbounds))
	}
	w.apply(`{type: MeshService, mesh: default, name: backend, spec: {selector: {dataplaneLabels: {matchLabels: {app: backend}}},
  ports: [{port: 80, targetPort: main, appProtocol: http}, {port: 90, targetPort: own, appProtocol: http}]}}
---
{type: HostnameGenerator, name: names, spec: {selector: {meshService: {}}, template: "{{ .DisplayName }}.mesh"}}`)
	w.waitTrust()
	backend.capture(captured)
	caller.capture(captured)
	if got := caller.asks(backend4 + ":8080"); got != 0 {
		t.Errorf("without proxies: %d", got)
	}
	backend.envoy(zone.BootstrapConfig{Dataplane: "backend"})
	caller.envoy(zone.BootstrapConfig{Dataplane: "caller", DNSAddress: "127.0.0.1:15053"})

	var at string
	eventually(t, "the name", func() bool {
		caller.as(applicationUser, func() { at = resolveHere("127.0.0.1:15053", "backend.mesh") })
		return at != ""
	})
	eventually(t, "denied without a permission", func() bool { return caller.asks(at+":80") == 403 })
	w.apply(`{type: MeshTrafficPermission, mesh: default, name: callers, spec: {rules: [{default: {allow: [
  {spiffeID: {type: Exact, value: "spiffe://default.zone-1.mesh.local/workload/caller"}}]}}]}}`)
	eventually(t, "allowed", func() bool { return caller.asks(at+":80") == 200 })
	// An address that the platform gives the service, as Kubernetes does; the backend's own proxy answers for no names.
	const clusterIP = "10.97.0.7:80"
	service := w.store.Snapshot().Get(resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "backend"}).Clone()
	service.Status = []byte(`{"vips":[{"ip":"10.97.0.7"},{"ip":"127.0.0.1"},{"ip":"fd97::7"}]}`)
	_, err := w.store.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: service}}})
	must(t, err)
	eventually(t, "the service's own address", func() bool { return caller.asks(clusterIP) == 200 })
	eventually(t, "the same by IPv6", func() bool { return caller.asks("[fd97::7]:80") == 200 })
	eventually(t, "the machine's own service, which its proxy judges too", func() bool { return backend.asks(clusterIP) == 403 })
	eventually(t, "an application on the machine's address only", func() bool { return caller.asks(at+":90") == 200 })

	stranger := func(address string) bool { // the proxy's user of the caller's machine dials past its own proxy
		c, err := caller.dial(proxyUser, address)
		if err != nil {
			return false
		}
		defer c.Close()
		return statusOn(c, "backend") != 0
	}
	for _, address := range []string{backend4 + ":8080", backend4 + ":9090", backend4 + ":9999", backend4 + ":15006",
		backend4 + ":15001", backend4 + ":9901", "[" + backend6 + "]:8080", "[" + backend6 + "]:9999", "[" + backend6 + "]:15006"} {
		if stranger(address) {
			t.Errorf("%s answers in the clear", address)
		}
	}
	c, err := caller.dial(proxyUser, backend4+":8080")
	must(t, err)
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	secured := tls.Client(c, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*w.certificate("other")}})
	if got := statusOn(secured, "backend"); got != 403 {
		t.Errorf("another identity: %d", got)
	}
	// The machine's own processes reach their neighbours, and the mesh by its proxy.
	if got := backend.asks("127.0.0.1:8080"); got != 200 {
		t.Errorf("within the machine: %d", got)
	}
	if c, err := caller.dial(applicationUser, "127.0.0.1:1"); err == nil || !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a captured inbound has its address: %v, %v", c, err)
	}
}
