package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// Workloads of zone-2 that call backend in zone-1, each on its own port on localhost.
const (
	shop    = zone2 + "/shop"
	browser = zone2 + "/browser"
)

// toBackend is the name of their outbound.
const toBackend = "backend"

// crossCall is a request over an outbound and its expected result.
type crossCall struct {
	why, from, path string
	status          int
	// between are the limits for its duration.
	between [2]time.Duration
	// applied is applied before the request, and stays.
	applied *applied

	got  int
	took time.Duration
	err  error
}

func (c *crossCall) ok() bool {
	return c.err == nil && c.got == c.status && c.took >= c.between[0] && c.took <= c.between[1]
}

func crossCalls() []crossCall {
	soon := [2]time.Duration{0, 900 * time.Millisecond}
	return []crossCall{
		{why: "denied by default", from: shop, path: "/", status: http.StatusForbidden, between: soon},
		{
			why: "the owner allows shop by its identity", from: shop, path: "/", status: http.StatusOK, between: soon,
			applied: &applied{"owner-allow-shop.yaml", zone1},
		},
		{why: "and nobody else", from: browser, path: "/", status: http.StatusForbidden, between: soon},
		{
			why: "the producer's timeout of zone-1 holds: 1 s", from: shop, path: "/wait/4s", status: http.StatusGatewayTimeout,
			between: [2]time.Duration{900 * time.Millisecond, 2 * time.Second},
		},
		{
			why: "the consumer's policy of zone-2 beats it: 0.3 s", from: shop, path: "/wait/4s",
			status:  http.StatusGatewayTimeout,
			between: [2]time.Duration{250 * time.Millisecond, 900 * time.Millisecond},
			applied: &applied{"shop-timeout.yaml", zone2},
		},
		{why: "what is quick enough passes", from: shop, path: "/wait/100ms", status: http.StatusOK, between: soon},
	}
}

// startCallers starts the ingress of zone-1 and the callers of zone-2.
func (m *mesh) startCallers(ctx context.Context) error {
	if _, err := m.StartIngress(ctx, m.servers[zone1], "ingress"); err != nil {
		return err
	}
	for _, key := range []string{shop, browser} {
		zone, name := m.split(key)
		w, err := m.StartWorkload(ctx, cluster.WorkloadConfig{
			Zone: zone, Mesh: meshName, Namespace: "shop", Name: name, ServiceAccount: name,
			Inbounds: []cluster.InboundConfig{{Name: httpPort, Protocol: cluster.ProtocolHTTP}},
			Outbounds: []cluster.OutboundConfig{{Name: toBackend, BackendRef: map[string]any{
				"kind": "MeshService", "labels": map[string]any{"kuma.io/display-name": "backend", "kuma.io/zone": zone1},
			}}},
		})
		if err != nil {
			return err
		}
		m.workloads[key] = w
	}
	return nil
}

// showCalls makes the calls one after the other. It repeats each until its result is the expected one or the time is
// over.
func (m *mesh) showCalls(ctx context.Context) ([]crossCall, error) {
	calls := crossCalls()
	for i := range calls {
		c := &calls[i]
		if c.applied != nil {
			if err := m.apply(ctx, *c.applied); err != nil {
				return nil, err
			}
		}
		_ = cluster.Until(ctx, settleTimeout, c.why, func(ctx context.Context) error {
			start := time.Now()
			c.got, _, c.err = m.workloads[c.from].Call(ctx, toBackend, c.path)
			if c.took = time.Since(start); !c.ok() {
				return fmt.Errorf("got %d after %s: %w", c.got, c.took, c.err)
			}
			return nil
		})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	for _, c := range calls {
		if c.applied != nil {
			if err := m.remove(ctx, *c.applied); err != nil {
				return nil, err
			}
		}
	}
	return calls, nil
}
