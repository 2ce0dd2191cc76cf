package zone_test

import (
	"crypto/tls"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// version runs an application of one version behind the service backend of a namespace, in the form of seed 004.
func (w *world) version(version string) {
	w.t.Helper()
	srv := httptest.NewServer(answers(version))
	w.t.Cleanup(srv.Close)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, namespace: backend-ns, name: %[1]s, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [
  {name: main, port: %d, servicePort: %d, protocol: http, tags: {version: %[1]s}}]}}`, version, freePort(w.t), srv.Listener.Addr().(*net.TCPAddr).Port))
	w.startEnvoy(zone.BootstrapConfig{Dataplane: version, Namespace: "backend-ns"})
}

const subsetService = `{type: MeshService, mesh: default, namespace: backend-ns, name: backend, spec: {selector: {dataplaneLabels: {matchLabels: {app: backend}}}, ports: [{name: http, port: 80, targetPort: main, appProtocol: http}]}}`

// subsetRoute is the route of seed 004, "Policy in zone-1 references MeshHTTPRoute from zone-2".
const subsetRoute = `{type: MeshHTTPRoute, mesh: default, namespace: backend-ns, name: backend-v2, spec: {to: [{targetRef: {kind: MeshService, name: backend}, rules: [
  {matches: [{path: {type: PathPrefix, value: /v2}}], default: {backendRefs: [{kind: MeshServiceSubset, name: backend, tags: {version: v2}}]}}]}]}}`

// versionsAt returns the different answers to some calls.
func versionsAt(port int, path string) []string {
	var out []string
	for range 20 {
		_, body := plain(port, path)
		out = append(out, strings.Fields(body + " -")[0])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestRouteToASubset: a producer's route sends a part of its service's requests to the Dataplanes with a tag, for
// clients of its own zone, and for those of another one through the ingress.
func TestRouteToASubset(t *testing.T) {
	t.Parallel()
	one, two := newWorldIn(t, "zone-1", rbac.Auto), newWorldIn(t, "zone-2", rbac.Auto)
	one.version("v1")
	one.version("v2")
	one.apply(subsetService + "\n---\n" + subsetRoute)
	one.apply(fmt.Sprintf(`{type: ZoneIngress, name: ingress, networking: {address: 127.0.0.1, port: %d}}`, freePort(t)))
	ingress := one.startEnvoy(zone.BootstrapConfig{ZoneIngress: "ingress"})
	near, e := one.caller("caller", `{kind: MeshService, name: backend}`)
	far, other := two.caller("caller", `{kind: MeshService, labels: {kuma.io/display-name: backend}}`)
	for _, zone := range []string{"zone-1", "zone-2"} {
		one.apply(strings.Replace(fmt.Sprintf(allowCaller, zone), "name: caller", "name: caller-"+zone, 1))
	}
	one.waitTrust()
	two.waitTrust()
	one.tell(two)
	two.tell(one)
	// Calls of another zone may share a connection, which is to one version.
	eventually(t, "both versions", func() bool { return slices.Equal(versionsAt(near[0], "/"), []string{"v1", "v2"}) })
	eventually(t, "one of them", func() bool { return strings.HasPrefix(versionsAt(far[0], "/")[0], "v") })
	for zone, port := range map[string]int{"zone-1": near[0], "zone-2": far[0]} {
		eventually(t, "the subset in "+zone, func() bool { return slices.Equal(versionsAt(port, "/v2/x"), []string{"v2"}) })
	}
	// The subset follows the tags.
	one.version("v3")
	one.apply(strings.ReplaceAll(subsetRoute, "version: v2", "version: v3"))
	one.tell(two)
	for zone, port := range map[string]int{"zone-1": near[0], "zone-2": far[0]} {
		eventually(t, "another subset in "+zone, func() bool { return slices.Equal(versionsAt(port, "/v2/x"), []string{"v3"}) })
	}
	for _, e := range []*envoy{ingress, e, other} {
		e.refusedNothing()
	}
}

// TestServerNamesOfBothMakers: an ingress leads by both spellings of a service's server name, and a caller asks an
// ingress of Kuma, which lists services, by Kuma's.
func TestServerNamesOfBothMakers(t *testing.T) {
	t.Parallel()
	one, two := newWorldIn(t, "zone-1", rbac.Auto), newWorldIn(t, "zone-2", rbac.Auto)
	one.service("backend")
	port := freePort(t)
	one.apply(fmt.Sprintf(`{type: ZoneIngress, name: ingress, networking: {address: 127.0.0.1, port: %d}}`, port))
	one.startEnvoy(zone.BootstrapConfig{ZoneIngress: "ingress"})
	ports, e := two.caller("caller", `{kind: MeshService, labels: {kuma.io/display-name: backend}}`)
	one.apply(fmt.Sprintf(allowCaller, "zone-2"))
	one.waitTrust()
	two.waitTrust()
	one.tell(two)
	two.tell(one)
	eventually(t, "reachable", ok(ports[0], "/"))
	hash := fnv.New64a()
	_, _ = hash.Write([]byte("backend;default;"))
	leads := func(name string) bool {
		conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{InsecureSkipVerify: true, ServerName: name})
		if err != nil {
			return false
		}
		defer conn.Close()
		uris := conn.ConnectionState().PeerCertificates[0].URIs
		return len(uris) == 1 && uris[0].String() == "spiffe://default.zone-1.mesh.local/workload/backend"
	}
	for name, want := range map[string]bool{
		"sni.msvc.default.zone-1.backend.http":                         true,
		fmt.Sprintf("a%016x.backend.80.default.ms", hash.Sum64()):      true,
		fmt.Sprintf("a%016x.backend.81.default.ms", hash.Sum64()):      false,
		"subset-0000000000000000.sni.msvc.default.zone-1.backend.http": false,
	} {
		if leads(name) != want {
			t.Errorf("the ingress leads by %s: %v, want %v", name, !want, want)
		}
	}
	// The same ingress as Kuma's, which knows only its own spelling.
	key := resources.Key{Type: resources.TypeZoneIngress, Name: hashing.Name("", "ingress", "zone-1")}
	theirs := two.store.Snapshot().Get(key).Clone()
	front := onlyLeads(t, port, fmt.Sprintf("a%016x.backend.80.default.ms", hash.Sum64()))
	spec, err := resources.NewSpec(resources.TypeZoneIngress, fmt.Appendf(nil,
		`{"zone": "zone-1", "networking": {"address": "127.0.0.1", "port": %d}, "availableServices": [{"tags": {"kuma.io/service": "x"}, "mesh": "default"}]}`, front))
	must(t, err)
	theirs.Spec = spec
	two.put(theirs)
	eventually(t, "asked by the other spelling", func() bool { return e.members("backend", front) })
	for range 20 {
		if code, body := plain(ports[0], "/"); code != 200 {
			t.Fatalf("%d %s", code, body)
		}
	}
	e.refusedNothing()
}

// onlyLeads passes on connections whose first bytes hold a server name, and closes all others.
func onlyLeads(t *testing.T, to int, name string) (port int) {
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
			go passOn(conn, to, name)
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

func passOn(conn net.Conn, to int, name string) {
	defer conn.Close()
	hello := make([]byte, 16<<10)
	n, err := conn.Read(hello)
	if err != nil || !strings.Contains(string(hello[:n]), name) {
		return
	}
	there, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", to))
	if err != nil {
		return
	}
	defer there.Close()
	if _, err := there.Write(hello[:n]); err != nil {
		return
	}
	go func() { _, _ = io.Copy(there, conn) }()
	_, _ = io.Copy(conn, there)
}

// members reports whether the cluster of a service has an endpoint with the port, and no other.
func (e *envoy) members(service string, port int) bool {
	e.t.Helper()
	var lines []string
	for line := range strings.SplitSeq(e.get("/clusters"), "\n") {
		if strings.Contains(line, service) && strings.Contains(line, "::health_flags::") {
			lines = append(lines, line)
		}
	}
	return len(lines) == 1 && strings.Contains(lines[0], fmt.Sprintf("127.0.0.1:%d::", port))
}
