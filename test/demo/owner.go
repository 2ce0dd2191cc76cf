package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// owned is a policy that the owner of shop writes for her own workload, and what it does there.
type owned struct {
	typ, file string
	// does says what the policy does. shows returns an error until that is seen.
	does  string
	shows func(context.Context) error

	err error
}

// flakyCalls is enough calls for one of them to fail if nothing is sent again.
const flakyCalls = 6

// ownedByShop lists the policies, in the order in which they are shown.
func (m *mesh) ownedByShop() []owned {
	return []owned{
		{typ: "MeshTimeout", file: "shop-timeout.yaml", does: "a call that takes 1 s ends after 0.3 s", shows: m.timesOut},
		{typ: "MeshRetry", file: "shop-retry.yaml", does: "what fails once is sent again", shows: m.succeeds},
		{typ: "MeshRateLimit", file: "shop-rate-limit.yaml", does: "the third request of an hour gets 429", shows: m.limits},
		{typ: "MeshAccessLog", file: "shop-access-log.yaml", does: "a call is a line of the Envoy's output", shows: m.logs},
		{typ: "MeshTrace", file: "shop-trace.yaml", does: "a call is a span at the collector", shows: m.traces},
	}
}

// showOwned plays the owner of shop. Without a policy, its effect must not be seen.
func (m *mesh) showOwned(ctx context.Context) ([]owned, error) {
	before := []applied{{"owner-allow-shop.yaml", zone1}, {"shop-allow-frontend.yaml", zone2}}
	for _, a := range before {
		if err := m.apply(ctx, a); err != nil {
			return nil, err
		}
	}
	err := cluster.Until(ctx, settleTimeout, "shop to be allowed, and to allow", func(ctx context.Context) error {
		return run(func() error { return m.callsBackend(ctx, "/", http.StatusOK) },
			func() error { return m.callShop(ctx, http.StatusOK) })
	})
	if err != nil {
		return nil, err
	}
	all := m.ownedByShop()
	for i := range all {
		if err := m.showOne(ctx, &all[i]); err != nil {
			return nil, err
		}
	}
	for _, a := range before {
		if err := m.remove(ctx, a); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (m *mesh) showOne(ctx context.Context, o *owned) error {
	if o.shows(ctx) == nil {
		o.err = fmt.Errorf("it is so without the policy, too")
		return nil
	}
	a := applied{o.file, zone2}
	if err := m.apply(ctx, a); err != nil {
		return err
	}
	o.err = cluster.Until(ctx, settleTimeout, o.typ+": "+o.does, o.shows)
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.remove(ctx, a)
}

// callsBackend calls backend from shop, and wants a status.
func (m *mesh) callsBackend(ctx context.Context, path string, want int) error {
	got, _, err := m.workloads[shop].Call(ctx, toBackend, path)
	if err == nil && got != want {
		err = fmt.Errorf("%s: got %d, want %d", path, got, want)
	}
	return err
}

// callShop calls shop from frontend, and wants a status.
func (m *mesh) callShop(ctx context.Context, want int) error {
	got, _, err := m.clients[frontend].Get(ctx, m.workloads[shop].Inbound(httpPort).Port, "/")
	if err == nil && got != want {
		err = fmt.Errorf("shop answers %d, want %d", got, want)
	}
	return err
}

func (m *mesh) timesOut(ctx context.Context) error {
	start := time.Now()
	err := m.callsBackend(ctx, "/wait/1s", http.StatusGatewayTimeout)
	if took := time.Since(start); err == nil && took > 900*time.Millisecond {
		err = fmt.Errorf("it took %s", took)
	}
	return err
}

func (m *mesh) succeeds(ctx context.Context) error {
	for range flakyCalls {
		if err := m.callsBackend(ctx, "/flaky", http.StatusOK); err != nil {
			return err
		}
	}
	return nil
}

// limits asks until a request is too many.
func (m *mesh) limits(ctx context.Context) error {
	for range 2 {
		if err := m.callShop(ctx, http.StatusOK); err != nil {
			break // an attempt before this one has used the bucket up
		}
	}
	return m.callShop(ctx, http.StatusTooManyRequests)
}

func (m *mesh) logs(ctx context.Context) error {
	if err := m.callsBackend(ctx, "/logged", http.StatusOK); err != nil {
		return err
	}
	if !strings.Contains(m.workloads[shop].Proxy.Log(), "shop called /logged: 200\n") {
		return fmt.Errorf("no such line")
	}
	return nil
}

func (m *mesh) traces(ctx context.Context) error {
	if err := m.callsBackend(ctx, "/traced", http.StatusOK); err != nil {
		return err
	}
	if !m.spans.has("CLIENT", "/traced") {
		return fmt.Errorf("no such span")
	}
	return nil
}

// pathOf returns the path of a URL.
func pathOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Path
}
