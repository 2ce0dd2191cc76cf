package zone_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/causeway-mesh/causeway/resources"
)

func (s *sent) retries() []sentRow {
	const typ = resources.TypeMeshRetry
	limited := func(format, wait string, most time.Duration) sentRow {
		return sentRow{"pause by " + format, typ,
			"http: {numRetries: 1, retryOn: ['429'], rateLimitedBackOff: {maxInterval: 5s, resetHeaders: [{name: x-wait, format: " + format + "}]}}",
			func() bool { return s.once("status=429&wait="+wait, 500*time.Millisecond, most) }}
	}
	return []sentRow{
		{"time of an attempt", typ, "http: {numRetries: 1, perTryTimeout: 50ms, retryOn: [5xx]}",
			func() bool { return s.once("hang=1", 0, 400*time.Millisecond) }},
		limited("Seconds", "1", 3*time.Second), limited("UnixTimestamp", "unix", 4*time.Second),
		{"requests with a header", typ, "http: {numRetries: 1, retryOn: [5xx], retriableRequestHeaders: [{name: x-again, type: Exact, value: 'yes'}]}",
			func() bool {
				return s.once("status=503", 0, time.Second, "x-again", "yes") && !s.once("status=503", 0, time.Second, "x-again", "no")
			}},
		{"answers with a header", typ, "http: {numRetries: 1, retriableResponseHeaders: [{name: x-wait, type: Prefix, value: soo}]}",
			func() bool {
				return s.once("status=404&wait=soon", 0, time.Second) && !s.once("status=404&wait=never", 0, time.Second)
			}},
		{"one connection attempt", typ, "tcp: {maxConnectAttempt: 1}", s.rises("lines", "upstream_cx_connect_attempts_exceeded", func() {
			for range 6 {
				s.holds()
			}
		})},
	}
}

func (s *sent) callRetries() []sentRow {
	const typ = resources.TypeMeshRetry
	return []sentRow{
		{"calls again", typ, "grpc: {numRetries: 1, retryOn: [Unavailable], backOff: {baseInterval: 5ms, maxInterval: 10ms}}",
			func() bool { return s.call("once") == codes.OK }},
		{"time of an attempt of a call", typ, "grpc: {numRetries: 1, perTryTimeout: 50ms}", func() bool { return s.call("hang-once") == codes.OK }},
		{"calls with a header", typ, "grpc: {numRetries: 1, retryOn: [Unavailable], retriableRequestHeaders: [{name: x-again, type: Exact, value: 'yes'}]}",
			func() bool {
				return s.call("once", "x-again", "yes") == codes.OK && s.call("once", "x-again", "no") == codes.Unavailable
			}},
		{"answers of calls with a header", typ, "grpc: {numRetries: 1, retriableResponseHeaders: [{name: x-wait, type: Exact, value: '1'}]}",
			func() bool { return s.call("once-missing") == codes.OK }},
		{"pause that a call's answer asks for", typ,
			"grpc: {numRetries: 1, retryOn: [Unavailable], rateLimitedBackOff: {maxInterval: 3s, resetHeaders: [{name: x-wait, format: Seconds}]}}",
			func() bool {
				start := time.Now()
				return s.call("once") == codes.OK && time.Since(start) > 500*time.Millisecond
			}},
	}
}

func (s *sent) breakers() []sentRow {
	const typ = resources.TypeMeshCircuitBreaker
	// atOnce does something several times at once.
	atOnce := func(do func()) func() {
		return func() {
			var all sync.WaitGroup
			for range 5 {
				all.Go(do)
			}
			all.Wait()
		}
	}
	return []sentRow{
		{"pools", typ, "connectionLimits: {maxConnectionPools: 1}", s.rises("web", "upstream_cx_pool_overflow", s.many(6, "/ok"))},
		{"requests that wait", typ, "connectionLimits: {maxConnections: 1, maxPendingRequests: 1}", s.rises("web", "upstream_rq_pending_overflow",
			atOnce(func() { s.code("/hang") }))},
		{"requests at once", typ, "connectionLimits: {maxRequests: 1}", s.rises("streams", "upstream_rq_503",
			atOnce(func() { s.call("hang") }))},
		{"retries at once", typ, "connectionLimits: {maxRetries: 0}", s.rises("web", "upstream_rq_retry_overflow", func() {
			s.apply(`{type: MeshRetry, mesh: default, name: twice, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {numRetries: 1, retryOn: ['503']}}}]}}`)
			s.once("status=503", 0, time.Second)
			s.remove(resources.TypeMeshRetry, "twice")
		})},
	}
}

func (s *sent) outliers() []sentRow {
	const typ = resources.TypeMeshCircuitBreaker
	row := func(name, service, detectors, counts string, do func()) sentRow {
		return sentRow{name, typ, "outlierDetection: {interval: 300ms, baseEjectionTime: 50ms, maxEjectionTime: 50ms, maxEjectionPercent: 100, healthyPanicThreshold: 0, " + detectors + "}",
			s.rises(service, "outlier_detection.ejections_enforced_"+counts, do)}
	}
	return []sentRow{
		row("gateway errors", "web", "detectors: {gatewayFailures: {consecutive: 2}}", "consecutive_gateway_failure", s.many(9, "/bad?status=503")),
		row("all errors", "web", "detectors: {totalFailures: {consecutive: 2}}", "consecutive_5xx", s.many(9, "/bad?status=500")),
		row("errors by share", "web", "detectors: {failurePercentage: {minimumHosts: 3, requestVolume: 3, threshold: 50}}", "failure_percentage", s.many(60, "/bad?status=500")),
		row("errors beside others", "web", "detectors: {successRate: {minimumHosts: 3, requestVolume: 3, standardDeviationFactor: '1.0'}}", "success_rate", s.many(60, "/bad?status=500")),
		{"no detection", typ, "outlierDetection: {disabled: true}", func() bool { // the dead endpoint is asked on, by nobody's default
			before := s.counter("lines", "upstream_cx_connect_fail")
			for range 8 {
				s.holds()
			}
			return s.counter("lines", "upstream_cx_connect_fail") >= before+4
		}},
	}
}

func (s *sent) health() []sentRow {
	const typ = resources.TypeMeshHealthCheck
	sick := func(more string) string {
		return "interval: 100ms, timeout: 1s, unhealthyThreshold: 1, noTrafficInterval: 100ms, http: {path: /sick}, grpc: {disabled: true}, tcp: {disabled: true}, " + more
	}
	return []sentRow{
		{"everybody sick, and asked all the same", typ, sick("reuseConnection: true"), func() bool {
			return strings.Count(s.get("/clusters"), "/failed_active_hc") >= 3 && s.code("/ok") == http.StatusOK
		}},
		{"nobody asked below the threshold", typ, sick("healthyPanicThreshold: 0"), func() bool { return s.code("/ok") == http.StatusServiceUnavailable }},
		{"nobody asked in a panic", typ, sick("failTrafficOnPanic: true"), func() bool { return s.code("/ok") == http.StatusServiceUnavailable }},
		{"authority of a check", typ, "interval: 100ms, timeout: 1s, noTrafficInterval: 100ms, initialJitter: 1ms, intervalJitter: 1ms, intervalJitterPercent: 5, grpc: {serviceName: s, authority: checks.example}",
			func() bool { return s.calls.checkedSince("checks.example") }},
	}
}

func (s *sent) hashes() (rows []sentRow) {
	const sourceIP = "hashPolicies: [{type: Connection, connection: {sourceIP: true}}]"
	for name, conf := range map[string]string{
		"ring":   "loadBalancer: {type: RingHash, ringHash: {minRingSize: 64, " + sourceIP + "}}",
		"Maglev": "loadBalancer: {type: Maglev, maglev: {tableSize: 503, " + sourceIP + "}}",
		"beside": "loadBalancer: {type: RingHash}, " + sourceIP,
	} {
		rows = append(rows, sentRow{"address of a client by " + name, resources.TypeMeshLoadBalancingStrategy, conf, func() bool {
			who := s.among(8)
			return strings.Repeat(who[0], len(who)) == strings.Join(who, "")
		}})
	}
	return rows
}

func (s *sent) timeouts() []sentRow {
	const typ = resources.TypeMeshTimeout
	gone := func() bool { return s.code("/hang") == http.StatusGatewayTimeout }
	return []sentRow{
		{"request", typ, "http: {requestTimeout: 100ms}", gone},
		{"idle stream", typ, "http: {streamIdleTimeout: 100ms}", gone},
		{"stream", typ, "http: {maxStreamDuration: 100ms}", func() bool { return s.code("/hang") != http.StatusOK }},
		{"life of a connection", typ, "http: {maxConnectionDuration: 50ms}", s.rises("web", "upstream_cx_max_duration_reached", s.many(20, "/ok"))},
		{"idle connection", typ, "idleTimeout: 100ms", func() bool { return !s.holds() }},
		{"headers", typ, "http: {requestHeadersTimeout: 100ms}", func() bool {
			conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.web))
			must(s.world.t, err)
			defer conn.Close()
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n")
			_ = conn.SetReadDeadline(time.Now().Add(400 * time.Millisecond))
			answer := make([]byte, 12)
			_, _ = io.ReadFull(conn, answer)
			return string(answer) == "HTTP/1.1 408"
		}},
	}
}
