package xds

import (
	"context"
	"flag"
	"fmt"
	"syscall"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// changeProxies is how many proxies BenchmarkChangeOfAll has.
var changeProxies = flag.Int("change-proxies", 200, "proxies of BenchmarkChangeOfAll; `make bench` has 2000")

// changedConf is a policy whose changes are measured: the n-th conf of a list.
type changedConf struct {
	typ  resources.Type
	list string
	conf func(n int) string
}

// changedConfs are those of `make bench` (test/bench/policy_types.go), in its order: what was measured stays.
var changedConfs = []changedConf{
	{resources.TypeMeshTimeout, "to", func(n int) string {
		return fmt.Sprintf(`{"http": {"streamIdleTimeout": "%dms", "requestTimeout": "0s"}}`, 7001+n)
	}},
	{resources.TypeMeshRetry, "to", func(n int) string {
		return fmt.Sprintf(`{"http": {"backOff": {"baseInterval": "%dms", "maxInterval": "1m"}}}`, 7001+n)
	}},
	{resources.TypeMeshCircuitBreaker, "to", func(n int) string {
		return fmt.Sprintf(`{"connectionLimits": {"maxConnections": %d}}`, 5000+n)
	}},
	{resources.TypeMeshHealthCheck, "to", func(n int) string {
		return fmt.Sprintf(`{"interval": "%dms", "timeout": "1s", "http": {"path": "/"}}`, 7001+n)
	}},
	{resources.TypeMeshLoadBalancingStrategy, "to", func(n int) string {
		return fmt.Sprintf(`{"loadBalancer": {"type": "RingHash", "ringHash": {"maxRingSize": %d}}}`, 50000+n)
	}},
	{resources.TypeMeshHTTPRoute, "to", func(n int) string {
		return fmt.Sprintf(`{"matches": [{"path": {"type": "PathPrefix", "value": "/"}}], "default": {"filters": [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "x-bench", "value": "w%d"}]}}]}}`, n)
	}},
	{resources.TypeMeshAccessLog, "to", loggedWord},
	{resources.TypeMeshTimeout, "rules", func(n int) string { return fmt.Sprintf(`{"http": {"streamIdleTimeout": "%dms"}}`, 7001+n) }},
	{resources.TypeMeshCircuitBreaker, "rules", func(n int) string {
		return fmt.Sprintf(`{"connectionLimits": {"maxConnections": %d}}`, 5000+n)
	}},
	{resources.TypeMeshRateLimit, "rules", func(n int) string {
		return fmt.Sprintf(`{"local": {"http": {"requestRate": {"num": %d, "interval": "1s"}}}}`, 5000+n)
	}},
	{resources.TypeMeshFaultInjection, "rules", func(n int) string {
		return fmt.Sprintf(`{"http": [{"delay": {"value": "%dms", "percentage": 1}}]}`, 7001+n)
	}},
	{resources.TypeMeshAccessLog, "rules", loggedWord},
	{resources.TypeMeshTLS, "rules", func(n int) string {
		return fmt.Sprintf(`{"tlsVersion": {"min": "TLS12"}, "tlsCiphers": [%q]}`,
			[]string{"ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"}[n%2])
	}},
	{resources.TypeMeshTrace, "default", func(n int) string {
		return fmt.Sprintf(`{"backends": [{"type": "OpenTelemetry", "openTelemetry": {"endpoint": "192.0.2.9:4317"}}], "tags": [{"name": "bench", "literal": "w%d"}]}`, n)
	}},
	{resources.TypeMeshMetric, "default", func(n int) string {
		return fmt.Sprintf(`{"backends": [{"type": "Prometheus", "prometheus": {"port": 7777, "path": "/w%d"}}]}`, n)
	}},
	{resources.TypeMeshProxyPatch, "default", func(n int) string {
		return fmt.Sprintf(`{"appendModifications": [{"cluster": {"operation": "Add", "value": "name: w%d\nconnectTimeout: 1s\ntype: STATIC\n"}}]}`, n)
	}},
}

func loggedWord(n int) string {
	return fmt.Sprintf(`{"backends": [{"type": "File", "file": {"path": "/dev/stdout", "format": {"type": "Plain", "plain": "w%d"}}}]}`, n)
}

// put writes the n-th conf for the whole mesh.
func (c *changedConf) put(b testing.TB, s store.Store, n int) {
	c.putFor(b, s, "bench-"+c.list, `{"kind": "Mesh"}`, n)
}

// putOne writes the n-th conf for one proxy.
func (c *changedConf) putOne(b testing.TB, s store.Store, proxy string, n int) {
	c.putFor(b, s, "bench-"+c.list+"-"+proxy, `{"kind": "Dataplane", "labels": {"proxy": "`+proxy+`"}}`, n)
}

// putFor writes the n-th conf for the proxies that a reference selects.
func (c *changedConf) putFor(b testing.TB, s store.Store, name, target string, n int) {
	item := c.conf(n)
	var body string
	switch {
	case c.list == "default":
		body = `"default": ` + item
	case c.typ == resources.TypeMeshHTTPRoute:
		body = `"to": [{"targetRef": {"kind": "MeshService", "name": "bench"}, "rules": [` + item + `]}]`
	case c.list == "to":
		body = `"to": [{"targetRef": {"kind": "MeshService", "name": "bench"}, "default": ` + item + `}]`
	default:
		body = `"rules": [{"default": ` + item + `}]`
	}
	putText(b, s, resources.Key{Type: c.typ, Mesh: "default", Name: name}, nil, `{"targetRef": `+target+`, `+body+`}`)
}

func putText(b testing.TB, s store.Store, key resources.Key, labels map[string]string, text string) {
	b.Helper()
	spec, err := resources.NewSpec(key.Type, []byte(text))
	if err != nil {
		b.Fatal(err)
	}
	r := testHome.Labelled(&resources.Resource{Key: key, Spec: spec, Labels: labels})
	if _, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
		b.Fatal(err)
	}
}

// askingStream is a stream that asks for all of a kind, and for more once it has a response.
type askingStream struct {
	s    *session
	subs [kinds]*stream.Subscription
	out  [kinds]chan cache.DeltaResponse
}

func (a *askingStream) ask(b testing.TB, k kind) {
	if a.subs[k] == nil {
		sub := stream.NewDeltaSubscription([]string{"*"}, nil, nil, true)
		a.subs[k], a.out[k] = &sub, make(chan cache.DeltaResponse, 1)
	}
	if _, err := a.s.CreateDeltaWatch(&discovery.DeltaDiscoveryRequest{TypeUrl: typeURLs[k], ResponseNonce: "n"}, a.subs[k],
		a.out[k]); err != nil {
		b.Fatal(err)
	}
}

// take takes the responses that wait, and reports how many there were.
func (a *askingStream) take(b testing.TB) (n int) {
	for more := true; more; {
		more = false
		for k := range kinds {
			select {
			case r := <-a.out[k]:
				a.subs[k].SetReturnedResources(r.GetNextVersionMap())
				a.ask(b, k)
				n++
				more = true
			default:
			}
		}
	}
	return n
}

// processorTime returns what the process has taken of the processors, which others on the machine change little.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkChangeOfAll measures a change of one policy that concerns all proxies of a zone, in a mesh with policies of all
// types, for each type: from the store to the responses, without the network.
func BenchmarkChangeOfAll(b *testing.B) {
	s := storeOfChanges(b, *changeProxies)
	x := testProxies(s)
	settle, end := askingProxies(b, x, *changeProxies)
	defer end()
	for i := range changedConfs {
		c := &changedConfs[i]
		n := 0
		c.put(b, s, n)
		settle()
		b.Run(fmt.Sprintf("%s_in_%s", c.typ, c.list), func(b *testing.B) {
			b.ReportAllocs()
			sent, before := 0, processorTime(b)
			for b.Loop() {
				n++
				c.put(b, s, n)
				sent += settle()
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N)/float64(*changeProxies), "cpu-us/proxy")
			b.ReportMetric(float64(sent)/float64(b.N)/float64(*changeProxies), "responses/proxy")
		})
	}
}

// storeOfChanges returns a zone of proxies that all send to one service.
func storeOfChanges(b testing.TB, proxies int) *store.Memory {
	b.Helper()
	s := store.NewMemory()
	for i := range proxies {
		name := fmt.Sprintf("dp-%d", i)
		putText(b, s, dataplaneKey(name), map[string]string{"proxy": name}, fmt.Sprintf(`{"networking": {"address": "127.1.%d.%d",
			"inbound": [{"port": 8080, "servicePort": 9080, "name": "http-port", "tags": {"kuma.io/service": "svc-%d", "kuma.io/protocol": "http"}}],
			"outbound": [{"port": 10000, "backendRef": {"kind": "MeshService", "name": "bench", "port": 80}}]}}`, i/250, 1+i%250, i%50))
	}
	putText(b, s, resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "bench"}, nil,
		`{"selector": {"dataplaneTags": {"kuma.io/service": "svc-0"}}, "ports": [{"name": "http", "port": 80, "targetPort": "http-port", "appProtocol": "http"}]}`)
	putText(b, s, resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default", Name: "bench"}, nil,
		`{"rules": [{"default": {"allow": [{"spiffeId": {"type": "Prefix", "value": "spiffe://"}}]}}]}`)
	for i := range changedConfs { // as `make bench`: a MeshTrace names each workload in the listeners of its proxies
		if c := &changedConfs[i]; c.typ == resources.TypeMeshTrace {
			c.put(b, s, 0)
		}
	}
	return s
}

// askingProxies connects the proxies of a benchmark of changes. settle applies what has changed, and returns how many responses
// they got; they have got what is there. end disconnects them.
func askingProxies(b testing.TB, x *Proxies, proxies int) (settle func() int, end func()) {
	b.Helper()
	streams := make([]*askingStream, proxies)
	for i := range streams {
		a := &askingStream{s: connectWhole(b, x, fmt.Sprintf("dp-%d", i))}
		for k := range kinds {
			if k != kindSecret {
				a.ask(b, k)
			}
		}
		streams[i] = a
	}
	settle = func() (n int) {
		x.catchUp()
		for _, a := range streams {
			n += a.take(b)
		}
		return n
	}
	settle()
	return settle, func() {
		for _, a := range streams {
			a.s.end()
		}
	}
}
