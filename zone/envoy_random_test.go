package zone_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// dice draws documents. Its values are at the edges of what is valid, and some beyond: those are not stored.
type dice struct {
	*rand.Rand
	ports []int
}

func (d *dice) one(of ...string) string { return of[d.IntN(len(of))] }

// some returns up to n items, separated by commas.
func (d *dice) some(n int, item func() string) string {
	var out []string
	for range d.IntN(n + 1) {
		out = append(out, item())
	}
	return strings.Join(out, ", ")
}

// maybe returns a field, or nothing.
func (d *dice) maybe(field func() string) string {
	if d.IntN(2) == 0 {
		return ""
	}
	return ", " + field()
}

func (d *dice) host() string {
	return d.one(`"*"`, "a.example", `"*.a.example"`, "b.a.example", `"*.b.a.example"`, "xn--bcher-kva.example", "1.example", "a-b.c",
		strings.Repeat("x", 63)+".example", `"*.`+strings.Repeat("a.", 100)+`example"`)
}

func (d *dice) duration() string {
	return d.one("0s", "1ms", "1s", "17s", "10m", "24h", "8760h", "1us", "1500ms", "-1s", "1e3s")
}

func (d *dice) text() string {
	return d.one("a", `"100%"`, `"%REQ(x)%"`, `"%START_TIME%"`, `"%"`, `"%%"`, `"{}"`, `"a b"`, `"\u00fc"`, `"\n"`, `""`, `"$1 \\1"`, strings.Repeat("v", 300))
}

func (d *dice) path() string {
	return d.one("/", "/a", "/a/", "/a/b", `"/a b"`, `"/%41"`, `"/{x}"`, "/a.b", `"/ä"`, "/"+strings.Repeat("p", 500), `"/a?b"`, "a", `"/a//b"`)
}

func (d *dice) expression() string {
	return d.one(`"/a.*"`, `"/(a|b)+"`, `"/[a-z]{2,40}"`, `".*"`, `"/(?i)x"`, `"/a{1000}"`, `"(/a"`, `"/\\d+/\\w*"`, `"/(a{1,30}){1,30}"`, `"/\\p{Greek}"`, `"/(?:[a-f0-9]{8}-){3}x"`)
}

func (d *dice) listener() string {
	port := d.ports[d.IntN(len(d.ports))]
	tags := d.maybe(func() string { return "tags: {kind: " + d.one("x", "y") + "}" })
	host := d.maybe(func() string { return "hostname: " + d.host() })
	switch d.IntN(4) {
	case 0:
		return fmt.Sprintf("{port: %d, protocol: TCP%s}", port, tags)
	case 1:
		return fmt.Sprintf("{port: %d, protocol: %s%s%s, tls: {mode: PASSTHROUGH}}", port, d.one("TLS", "HTTPS"), host, tags)
	case 2:
		return fmt.Sprintf("{port: %d, protocol: %s%s%s, tls: {mode: TERMINATE, certificates: [{secret: %s}%s]}}", port, d.one("TLS", "HTTPS"), host, tags,
			d.one("good", "good", "absent"), d.maybe(func() string { return "{secret: good}" }))
	}
	return fmt.Sprintf("{port: %d, protocol: HTTP%s%s}", port, host, tags)
}

func (d *dice) backend() string {
	return d.one("{kind: MeshService, name: one}", "{kind: MeshService, name: one, weight: 0}", "{kind: MeshService, name: two, port: 80, weight: 7}",
		"{kind: MeshExternalService, name: out, weight: 4000000000}", "{kind: MeshExternalService, name: out, weight: 99}", "{kind: MeshService, name: absent}",
		"{kind: MeshServiceSubset, name: one, tags: {version: v2}}", "{kind: MeshMultiZoneService, name: all}", "{kind: MeshService, name: lines}",
		"{kind: MeshService, labels: {kuma.io/display-name: one}, weight: 1}")
}

func (d *dice) header() string {
	return d.one("x-a", "X-A", "x_a", "host", "content-type", "cookie", "x-forwarded-for", ":path", "connection", "te", `"a b"`, "x-envoy-retry-on")
}

func (d *dice) match() string {
	return "{" + strings.TrimPrefix(d.maybe(func() string {
		return "path: " + d.one("{type: Exact, value: "+d.path()+"}", "{type: PathPrefix, value: "+d.path()+"}", "{type: RegularExpression, value: "+d.expression()+"}")
	})+d.maybe(func() string { return "method: " + d.one("GET", "CONNECT", "PATCH", "OPTIONS", "get") })+
		d.maybe(func() string {
			return "headers: [" + d.some(3, func() string {
				return d.one("{name: "+d.header()+", value: "+d.text()+"}", "{name: "+d.header()+", type: "+d.one("Present", "Absent", "Exact")+"}",
					"{name: "+d.header()+", type: RegularExpression, value: "+d.expression()+"}", "{name: "+d.header()+", type: Prefix, value: "+d.text()+"}")
			}) + "]"
		})+d.maybe(func() string {
		return "queryParams: [" + d.some(3, func() string {
			return d.one("{name: q, value: "+d.text()+"}", "{name: "+d.text()+", type: RegularExpression, value: "+d.expression()+"}", "{name: q, type: Exact, value: x}")
		}) + "]"
	}), ", ") + "}"
}

func (d *dice) filter() string {
	modifier := func() string {
		return "{" + strings.TrimPrefix(d.maybe(func() string { return "set: [{name: " + d.header() + ", value: " + d.text() + "}]" })+
			d.maybe(func() string { return "add: [{name: " + d.header() + ", value: " + d.text() + "}]" })+
			d.maybe(func() string { return "remove: [" + d.header() + "]" }), ", ") + "}"
	}
	path := func() string {
		return d.one("{type: ReplaceFullPath, replaceFullPath: "+d.path()+"}", "{type: ReplacePrefixMatch, replacePrefixMatch: "+d.path()+"}")
	}
	switch d.IntN(5) {
	case 0:
		return "{type: RequestHeaderModifier, requestHeaderModifier: " + modifier() + "}"
	case 1:
		return "{type: ResponseHeaderModifier, responseHeaderModifier: " + modifier() + "}"
	case 2:
		return "{type: RequestRedirect, requestRedirect: {" + strings.TrimPrefix(d.maybe(func() string { return "scheme: " + d.one("http", "https", "ftp") })+
			d.maybe(func() string { return "hostname: " + d.one("a.example", `"a b"`, `"*.a"`, "A.example") })+d.maybe(func() string { return "port: " + d.one("1", "443", "65535", "0", "70000") })+
			d.maybe(func() string { return "statusCode: " + d.one("301", "302", "303", "307", "308", "200") })+d.maybe(func() string { return "path: " + path() }), ", ") + "}}"
	case 3:
		return "{type: URLRewrite, urlRewrite: {" + strings.TrimPrefix(d.maybe(func() string { return "hostname: " + d.one("a.example", `"a b"`, "A.example") })+
			d.maybe(func() string { return "path: " + path() })+d.maybe(func() string { return "hostToBackendHostname: true" }), ", ") + "}}"
	}
	return "{type: RequestMirror, requestMirror: {backendRef: " + d.backend() + d.maybe(func() string { return "percentage: " + d.one("0", "1", "50", "100", `"0.01"`) }) + "}}"
}

func (d *dice) rule() string {
	return "{matches: [" + d.match() + d.maybe(d.match) + "], default: {" + strings.TrimPrefix(d.maybe(func() string { return "backendRefs: [" + d.some(3, d.backend) + "]" })+
		d.maybe(func() string { return "filters: [" + d.some(2, d.filter) + "]" }), ", ") + "}}"
}

func (d *dice) target() string {
	return d.one("{kind: Mesh}", "{kind: MeshGateway, name: edge}", "{kind: Dataplane}", "{kind: MeshGateway, name: edge, tags: {kind: x}}", "{kind: MeshGateway, name: edge}")
}

// document draws a document.
func (d *dice) document() string {
	name := "r-" + strconv.Itoa(d.IntN(3))
	head := func(kind string) string { return "type: " + kind + ", mesh: default, name: " + name }
	policy := func(kind, to string, conf func() string) string {
		return "{" + head(kind) + ", spec: {targetRef: " + d.target() + ", " + d.one("to: [{targetRef: "+to+", default: "+conf()+"}]", "rules: [{default: "+conf()+"}]") + "}}"
	}
	to := d.one("{kind: Mesh}", "{kind: MeshService, name: one}", "{kind: MeshExternalService, name: out}", "{kind: MeshHTTPRoute, name: r-1}")
	switch d.IntN(14) {
	case 0, 1:
		return "{type: MeshGateway, mesh: default, name: edge, selectors: [{match: {kuma.io/service: edge}}], conf: {listeners: [" + d.listener() + d.maybe(d.listener) + d.maybe(d.listener) + d.maybe(d.listener) + "]}}"
	case 2, 3, 4:
		return "{" + head("MeshHTTPRoute") + ", spec: {targetRef: " + d.target() + ", to: [{targetRef: " + d.one("{kind: Mesh}", "{kind: Mesh}", "{kind: MeshService, name: one}") +
			d.maybe(func() string { return "hostnames: [" + d.some(3, d.host) + "]" }) + ", rules: [" + d.rule() + d.maybe(d.rule) + "]}]}}"
	case 5:
		return "{" + head("MeshTCPRoute") + ", spec: {targetRef: " + d.target() + ", to: [{targetRef: {kind: Mesh}, rules: [{default: {backendRefs: [" + d.some(3, d.backend) + "]}}]}]}}"
	case 6:
		return "{type: HostnameGenerator, name: " + name + ", spec: {selector: {" + d.one("meshService", "meshExternalService", "meshMultiZoneService") + ": {}}, template: " +
			d.one(`"{{ .DisplayName }}.svc.mesh.local"`, `"{{ .DisplayName }}.{{ .Namespace }}.x.y"`, `"{{ .Name }}.{{ .Zone }}.a"`, `"{{ label \"app\" }}.b"`, `"`+strings.Repeat("a.", 100)+`{{ .Name }}.c"`) + "}}"
	case 7:
		return "{" + head("MeshPassthrough") + ", spec: {default: {passthroughMode: Matched, appendMatch: [" + d.some(6, func() string {
			return "{type: " + d.one("Domain, value: a.example", `Domain, value: "*.a.example"`, "IP, value: 203.0.113.7", `IP, value: "2001:db8::1"`, `CIDR, value: 10.0.0.0/8`, `CIDR, value: "::/0"`, `CIDR, value: 0.0.0.0/0`, `CIDR, value: 10.1.2.3/16`, `IP, value: "::ffff:10.0.0.1"`) +
				", protocol: " + d.one("tcp", "tls", "http", "http2", "grpc", "mysql") + d.maybe(func() string { return "port: " + d.one("1", "80", "443", "65535") }) + "}"
		}) + "]}}}"
	case 8:
		return policy("MeshTimeout", to, func() string {
			return "{connectionTimeout: " + d.duration() + ", idleTimeout: " + d.duration() + ", http: {requestTimeout: " + d.duration() + ", streamIdleTimeout: " + d.duration() + ", maxStreamDuration: " + d.duration() + ", maxConnectionDuration: " + d.duration() + ", requestHeadersTimeout: " + d.duration() + "}}"
		})
	case 9:
		return policy("MeshRetry", to, func() string {
			return "{http: {numRetries: " + d.one("0", "1", "100", "4000000000") + ", perTryTimeout: " + d.duration() + ", backOff: {baseInterval: " + d.duration() + ", maxInterval: " + d.duration() + "}, retryOn: [" + d.one(`"503"`, "5xx", "ConnectFailure", "HttpMethodGet", "ResetBeforeRequest") + "]}, tcp: {maxConnectAttempt: " + d.one("0", "1", "77") + "}}"
		})
	case 10:
		return policy("MeshLoadBalancingStrategy", to, func() string {
			return d.one("{loadBalancer: {type: RoundRobin}}", "{loadBalancer: {type: LeastRequest, leastRequest: {choiceCount: "+d.one("1", "2", "9")+"}}}", "{loadBalancer: {type: RingHash, ringHash: {minRingSize: "+d.one("1", "1024", "9000000")+", maxRingSize: "+d.one("1", "8000000")+"}}, hashPolicies: [{type: Header, header: {name: "+d.header()+"}}]}",
				"{loadBalancer: {type: Maglev, maglev: {tableSize: "+d.one("2", "7", "5000011", "4")+"}}, hashPolicies: [{type: Cookie, cookie: {name: "+d.text()+", ttl: "+d.duration()+", path: "+d.path()+"}}]}", "{loadBalancer: {type: Random}}")
		})
	case 11:
		return policy("MeshCircuitBreaker", to, func() string {
			return "{connectionLimits: {maxConnections: " + d.one("0", "1", "4000000000") + ", maxRetries: 1}, outlierDetection: {interval: " + d.duration() + ", baseEjectionTime: " + d.duration() + ", maxEjectionTime: " + d.duration() + ", maxEjectionPercent: " + d.one("0", "100", "101") + ", detectors: {totalFailures: {consecutive: " + d.one("0", "1", "99") + "}}}}"
		})
	case 12:
		return policy("MeshHealthCheck", to, func() string {
			return "{interval: " + d.duration() + ", timeout: " + d.duration() + ", healthyThreshold: " + d.one("0", "1", "9") + ", unhealthyThreshold: 1, http: {path: " + d.path() + ", expectedStatuses: [" + d.one("200", "99", "599", "600") + "]}}"
		})
	}
	return policy("MeshAccessLog", to, func() string {
		return "{backends: [{type: File, file: {path: /dev/stdout, format: {type: Plain, plain: " + d.text() + "}}}" +
			d.maybe(func() string {
				return "{type: OpenTelemetry, openTelemetry: {endpoint: \"127.0.0.1:4317\", body: {kind: " + d.text() + "}}}"
			}) + "]}"
	})
}

// TestRandomDocumentsAreTaken: whatever is stored of gateways, routes, names, passthrough and the policies on them, real
// Envoys accept all results. CAUSEWAY_ROUNDS draws more, and others.
func TestRandomDocumentsAreTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secret("good", serverCertificate(t, 1, "a.example"))
	d := &dice{Rand: rand.New(rand.NewPCG(1, 2))}
	rounds := 40
	if n, err := strconv.Atoi(os.Getenv("CAUSEWAY_ROUNDS")); err == nil {
		rounds, d.Rand = n, rand.New(rand.NewPCG(uint64(n), 3))
	}
	for range 3 {
		d.ports = append(d.ports, freePort(t))
	}
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: one-1, labels: {app: one}, networking: {address: 127.0.0.1, inbound: [{name: main, port: %d, servicePort: 9, protocol: http, tags: {version: v2}}]}}
---
{type: MeshService, mesh: default, name: one, labels: {app: one}, spec: {selector: {dataplaneLabels: {matchLabels: {app: one}}}, ports: [{port: 80, targetPort: main, appProtocol: http}]}}
---
{type: MeshService, mesh: default, name: two, spec: {ports: [{port: 80, appProtocol: grpc}]}}
---
{type: MeshService, mesh: default, name: lines, spec: {ports: [{port: 80, appProtocol: tcp}]}}
---
{type: MeshExternalService, mesh: default, name: out, spec: {match: {port: 80, protocol: http}, endpoints: [{address: 192.0.2.1, port: 80}]}}
---
{type: Dataplane, mesh: default, name: caller, labels: {kuma.io/workload: caller}, networking: {address: 127.0.0.1, inbound: [{name: main, port: %d, servicePort: 9, protocol: http}], transparentProxying: {redirectPortOutbound: %d}}}
---
{type: Dataplane, mesh: default, name: edge-1, labels: {kuma.io/workload: caller}, networking: {address: 127.0.0.1, gateway: {type: BUILTIN, tags: {kuma.io/service: edge}}}}`, freePort(t), freePort(t), freePort(t)))
	proxies := map[string]*envoy{"edge-1": w.startEnvoy(zone.BootstrapConfig{Dataplane: "edge-1", Gateway: true}),
		"caller": w.startEnvoy(zone.BootstrapConfig{Dataplane: "caller", DNSAddress: fmt.Sprintf("127.0.0.1:%d", freePort(t))})}
	stored, before := map[resources.Type]int{}, map[string]int{}
	for round := range rounds {
		var batch []string
		for range 4 {
			document := d.document()
			r, err := w.decoded(document)
			if err == nil {
				err = resources.Validate(r, w.home)
			}
			if err != nil {
				continue
			}
			stored[r.Type]++
			batch = append(batch, document)
		}
		for _, document := range batch {
			w.apply(document)
		}
		w.settles(strings.Join(batch, "\n"))
		for name, e := range proxies {
			refused := 0
			for _, n := range e.counted("update_rejected") {
				count, err := strconv.Atoi(n)
				must(t, err)
				refused += count
			}
			if refused > before[name] {
				t.Errorf("round %d: %s refuses what became of\n%s\n%s", round, name, strings.Join(batch, "\n"), w.insightText(name))
			}
			before[name] = refused
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("stored: %v", stored)
	for _, want := range []resources.Type{resources.TypeMeshGateway, resources.TypeMeshHTTPRoute, resources.TypeMeshTCPRoute, resources.TypeHostnameGenerator,
		resources.TypeMeshPassthrough, resources.TypeMeshTimeout, resources.TypeMeshRetry, resources.TypeMeshLoadBalancingStrategy,
		resources.TypeMeshCircuitBreaker, resources.TypeMeshHealthCheck, resources.TypeMeshAccessLog} {
		if stored[want] == 0 && rounds > 100 {
			t.Errorf("no %s was stored", want)
		}
	}
}

// decoded reads a document as a server does.
func (w *world) decoded(document string) (*resources.Resource, error) {
	all, err := resources.DecodeDocuments([]byte(document), resources.DecodeOptions{})
	if err != nil || len(all) != 1 {
		return nil, fmt.Errorf("%d documents: %w", len(all), err)
	}
	return all[0], nil
}

// settles waits until all proxies have answered what they were sent.
func (w *world) settles(after string) {
	w.t.Helper()
	behind := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		behind = ""
		for _, one := range w.proxies.SyncStatuses() {
			if one.Behind && one.Reason == "" {
				behind += fmt.Sprintf("%+v ", one)
			}
		}
		if behind == "" {
			return
		}
	}
	w.t.Fatalf("the proxies do not settle: %s\nafter\n%s", behind, after)
}
