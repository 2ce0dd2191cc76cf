package zone_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// sets is how many sets of policies TestEnvoyTakesWhatIsAccepted tries, and setsShort how many in short runs; the
// environment variable CAUSEWAY_SETS may say more, CAUSEWAY_SEED other ones.
const (
	sets      = 60
	setsShort = 12
)

// oddValues take the place of a value in a conf, by what it is.
var (
	oddNumbers = []any{0, 1, 2, 50, 99, 100, 101, 599, 600, 65535, 65536, 4294967295, 4294967296, -1, 0.5, "0.5", "99.9"}
	// Those of health checks are not long: proxies wait for the first ones.
	oddDurations = []any{"0s", "1ms", "1us", "1ns", "500ms", "1s", "59m", "1h", "8760h", "87600h", "315576000000s", "-1s"}
	oddTexts     = []any{
		"", "a", "A-B", "a b", "a\nb", "a\r", "\x00", "ü", ":path", ":authority", "host", "content-length",
		"connection", "x-envoy-retry-on", "te", "%", "%%", "%REQ(x)%", "%BOGUS%", "{a}", "*", "**", "[", "(",
		"/", "//", "/a/../b", "/a?b", "/a#b", "/{a}", "a,b", "a;b", "\"", "\\", "$1", "\\1", strings.Repeat("n", 300),
		strings.Repeat("/n", 2000),
		"http://a", "a.example:0", "a.example:70000", "[::1]:1", "::1", "10.0.0.300", "-", "_", ".", "a.", "100%",
		"50%", "1Gbps", "0bps", "100000Gbps",
	}
)

// destinations are specs of what the caller sends to, of which variants are written too.
var destinations = map[string][]string{
	"meshexternalservices/outside": {
		`{match: {type: HostnameGenerator, port: 80, protocol: http}, endpoints: [{address: 192.0.2.7, port: 80}]}`,
		`{match: {port: 443, protocol: http2}, endpoints: [{address: bank.example, port: 443}, {address: "2001:db8::1", port: 8443, priority: 5}], tls: {enabled: true, allowRenegotiation: true,
		  version: {min: TLS12, max: TLS13}, verification: {mode: SkipCA, serverName: bank.example, subjectAltNames: [{type: Exact, value: bank.example}, {type: Prefix, value: bank}]}}}`,
		`{match: {port: 443, protocol: grpc}, endpoints: [{address: bank.example, port: 443}], tls: {enabled: true, verification: {mode: SkipAll}}}`,
		`{match: {port: 9, protocol: tcp}, endpoints: [{address: 192.0.2.7, port: 9, priority: 1}], tls: {enabled: true, version: {min: TLS13}}}`,
	},
	"meshservices/backend": {
		`{selector: {dataplaneLabels: {matchLabels: {app: backend}}}, ports: [{name: http, port: 80, targetPort: main, appProtocol: http}]}`,
		`{selector: {dataplaneTags: {app: backend}}, ports: [{port: 80, targetPort: 9, appProtocol: http2}], identities: [{type: ServiceTag, value: backend}, {type: SpiffeID, value: "spiffe://default/backend"}]}`,
	},
}

// oddProxy is the networking of a Dataplane of which variants are written; ports and addresses stay, so that they can
// be listened on.
const oddProxy = `{"address": "127.0.0.1", "advertisedAddress": "192.0.2.8", "inbound": [
  {"name": "main", "port": %d, "servicePort": 9, "serviceAddress": "127.0.0.1", "protocol": "http", "tags": {"app": "odd", "version": "v1"}, "state": "Ready"},
  {"name": "db", "port": %d, "servicePort": 9, "protocol": "tcp", "tags": {"causeway.io/server-first": "true"}}],
  "outbound": [{"port": %d, "backendRef": {"kind": "MeshService", "name": "backend", "port": 80}}, {"port": %d, "address": "127.0.0.1", "backendRef": {"kind": "MeshService", "labels": {"app": "backend"}}}]}`

const setsMesh = `{"type": "Dataplane", "mesh": "default", "name": "backend", "labels": {"app": "backend", "node": "n1"}, "networking": {"address": "127.0.0.1", "inbound": [
  {"name": "main", "port": %d, "servicePort": 9, "protocol": "http"}, {"name": "grpc", "port": %d, "servicePort": 9, "protocol": "grpc"}, {"name": "h2", "port": %d, "servicePort": 9, "protocol": "http2"},
  {"name": "db", "port": %d, "servicePort": 9, "protocol": "tcp"}, {"name": "mail", "port": %d, "servicePort": 9, "protocol": "tcp", "tags": {"causeway.io/server-first": "true"}}]}}
{"type": "MeshService", "mesh": "default", "name": "backend", "spec": {"selector": {"dataplaneLabels": {"matchLabels": {"app": "backend"}}}, "ports": [{"name": "http", "port": 80, "targetPort": "main", "appProtocol": "http"}]}}
{"type": "MeshService", "mesh": "default", "name": "plain", "spec": {"selector": {"dataplaneLabels": {"matchLabels": {"app": "backend"}}}, "ports": [{"name": "http", "port": 84, "targetPort": "h2", "appProtocol": "http2"}]}}
{"type": "MeshService", "mesh": "default", "name": "streams", "spec": {"selector": {"dataplaneLabels": {"matchLabels": {"app": "backend"}}}, "ports": [{"name": "grpc", "port": 82, "targetPort": "grpc", "appProtocol": "grpc"}]}}
{"type": "MeshService", "mesh": "default", "name": "database", "spec": {"selector": {"dataplaneLabels": {"matchLabels": {"app": "backend"}}}, "ports": [{"name": "db", "port": 81, "targetPort": "db", "appProtocol": "tcp"}]}}
{"type": "MeshExternalService", "mesh": "default", "name": "outside", "spec": {"match": {"type": "HostnameGenerator", "port": 80, "protocol": "http"}, "endpoints": [{"address": "192.0.2.7", "port": 80}]}}
{"type": "Dataplane", "mesh": "default", "name": "caller", "labels": {"node": "n1"}, "networking": {"address": "127.0.0.1", "inbound": [{"name": "main", "port": %d, "servicePort": 9, "protocol": "http"}], "outbound": [
  {"port": %d, "backendRef": {"kind": "MeshService", "name": "backend"}}, {"port": %d, "backendRef": {"kind": "MeshService", "name": "plain"}}, {"port": %d, "backendRef": {"kind": "MeshService", "name": "streams"}},
  {"port": %d, "backendRef": {"kind": "MeshService", "name": "database"}}, {"port": %d, "backendRef": {"kind": "MeshExternalService", "name": "outside"}}]}}`

// TestEnvoyTakesWhatIsAccepted: whatever set of policies is accepted, with odd values in their confs, real Envoys take
// what follows from it. One policy that they refuse would keep the proxies that it selects from all later changes.
func TestEnvoyTakesWhatIsAccepted(t *testing.T) {
	t.Parallel()
	z := runZone(t)
	var ports []any
	for range 11 {
		ports = append(ports, freePort(t))
	}
	for document := range strings.SplitSeq(fmt.Sprintf(setsMesh, ports...), "\n{") {
		document = "{" + strings.TrimPrefix(document, "{")
		var head struct {
			Type resources.Type
			Name string
		}
		must(t, json.Unmarshal([]byte(document), &head))
		d, _ := resources.Lookup(head.Type)
		z.apply(d.Path+"/"+head.Name, document)
	}
	w := &world{t: t, address: z.addresses["xds"]}
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "caller"})

	oddPorts := []any{freePort(t), freePort(t), freePort(t), freePort(t)}
	z.apply("dataplanes/odd",
		fmt.Sprintf(`{"type": "Dataplane", "mesh": "default", "name": "odd", "networking": `+oddProxy+`}`, oddPorts...))
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "odd"})

	usual := sets
	if testing.Short() {
		usual = setsShort
	}
	seed, rounds := setting(t, "CAUSEWAY_SEED", 1), setting(t, "CAUSEWAY_SETS", usual)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	all, accepted, refused := specs(t), 0, 0
	types := slices.Sorted(maps.Keys(all))
	for round := range rounds {
		var written []string
		for _, typ := range types {
			if random.IntN(3) > 0 {
				continue
			}
			d, _ := resources.Lookup(typ)
			spec := variant(all[typ][random.IntN(len(all[typ]))], random)
			document, err := json.Marshal(map[string]any{"type": typ, "mesh": "default", "name": "p", "spec": spec})
			must(t, err)
			code, answer := z.call(http.MethodPut, "/meshes/default/"+d.Path+"/p", string(document))
			switch code / 100 {
			case 2:
				accepted++
				written = append(written, string(document))
			case 4:
				refused++
			default:
				t.Fatalf("%d %s for %s", code, answer, document)
			}
		}
		for _, path := range slices.Sorted(maps.Keys(destinations)) {
			if random.IntN(3) > 0 {
				continue
			}
			var spec any
			must(t, yaml.Unmarshal([]byte(destinations[path][random.IntN(len(destinations[path]))]), &spec))
			folder, name, _ := strings.Cut(path, "/")
			d, _ := resources.LookupPath(folder)
			document, err := json.Marshal(map[string]any{"type": d.Type, "mesh": "default", "name": name,
				"spec": variant(spec, random)})
			must(t, err)
			if code, _ := z.call(http.MethodPut, "/meshes/default/"+path, string(document)); code/100 == 2 {
				written = append(written, string(document))
			}
		}
		if random.IntN(3) == 0 {
			var networking any
			must(t, json.Unmarshal(fmt.Appendf(nil, oddProxy, oddPorts...), &networking))
			document, err := json.Marshal(map[string]any{"type": "Dataplane", "mesh": "default", "name": "odd",
				"networking": variant(networking, random)})
			must(t, err)
			if code, _ := z.call(http.MethodPut, "/meshes/default/dataplanes/odd", string(document)); code/100 == 2 {
				written = append(written, string(document))
			}
		}
		if problem := z.settle(round); problem != "" {
			t.Fatalf("seed %d, set %d: %s\nafter\n%s", seed, round, problem, strings.Join(written, "\n"))
		}
	}
	t.Logf("%d policies were accepted, %d refused", accepted, refused)
	if accepted < refused {
		t.Errorf("too few policies were accepted: %d, and %d refused", accepted, refused)
	}
}

func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

// settle waits until both proxies have taken a new permission, which comes after all else, and returns what they
// refuse.
func (z *runningZone) settle(round int) (refused string) {
	z.t.Helper()
	z.apply("meshtrafficpermissions/marker", fmt.Sprintf(
		`{"type": "MeshTrafficPermission", "mesh": "default", "name": "marker", "spec": {"rules": [{"default": {"allow": [{"spiffeId": {"type": "Exact", "value": "%smarker-%d"}}]}}]}}`, spiffe, round))
	var answer string
	eventually(z.t, "the proxies to take what there is", func() bool {
		var rollout struct {
			Proxies struct {
				Enforced int
				Behind   []struct{ Reason string }
			}
		}
		_, answer = z.call(http.MethodGet, "/_rollout/MeshTrafficPermission/default/marker", "")
		must(z.t, json.Unmarshal([]byte(answer), &rollout))
		waiting := 3 - rollout.Proxies.Enforced
		for _, p := range rollout.Proxies.Behind {
			if p.Reason != "" {
				waiting--
			}
		}
		return waiting == 0
	})
	for line := range strings.SplitSeq(z.metrics(), "\n") {
		if strings.HasPrefix(line, "causeway_xds_nacks_total") && !strings.HasSuffix(line, " 0") {
			return line + ": " + answer
		}
	}
	return ""
}
