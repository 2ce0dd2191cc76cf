package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/peer"
)

// TestFaultsSaturatedAPI has clients call the HTTP APIs of a global and a zone without a pause, with expensive and
// failing requests, while a zone joins and proxies connect. These succeed, and changes still reach proxies.
func TestFaultsSaturatedAPI(t *testing.T) {
	t.Parallel()
	m := &truth{newMesh(t, "zone-1")}
	b := &badProxies{truth: m, zone: m.zones["zone-1"]}
	clients, writes, zones := 32, 10, 2
	if *faultsLong {
		clients, writes, zones = 128, 100, 10
	}
	for i := range 300 {
		policy := loadPolicy(i, "much.")
		m.must(m.global.API.Put(t.Context(), fmt.Sprintf("/meshes/default/meshtrafficpermissions/load-%d", i), policy))
	}
	b.served = b.join("served", 5, peer.ProxyConfig{})
	before := b.propagation(writes)

	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	var answers, failures atomic.Int64
	for i := range clients {
		for _, s := range []*cluster.Server{m.global, b.zone} {
			asking.Go(func() { askWithoutPause(ctx, s.API.URL(), i, &answers, &failures) })
		}
	}
	defer asking.Wait()
	defer stop()
	m.eventually("the APIs to be busy", func(context.Context) error {
		if answers.Load() < int64(10*clients) {
			return errNotYet
		}
		return nil
	})
	var joined []time.Duration
	for i := range zones {
		begun := time.Now()
		name := fmt.Sprintf("late-%d", i)
		zone, err := m.StartZone(t.Context(), cluster.ZoneConfig{Name: name, Global: m.global})
		m.must(err)
		m.zones[name] = zone
		m.must(zone.WaitMesh(t.Context(), "default"))
		m.eventually(name+" to have the policies", func(ctx context.Context) error {
			items, err := zone.API.List(ctx, "/meshes/default/meshtrafficpermissions")
			if err == nil && len(items) < 300 {
				err = errNotYet
			}
			return err
		})
		joined = append(joined, time.Since(begun))
	}
	begun := time.Now()
	b.served = append(b.served, b.join("late", 5, peer.ProxyConfig{})...)
	during := b.propagation(writes)
	for _, p := range b.served {
		m.must(p.Err())
	}
	stop()
	asking.Wait()
	t.Logf("%d answers and %d refusals to %d clients; zones joined and had all within %s; 5 proxies connected and were changed %d times in %s; changes p50 %s worst %s before, p50 %s worst %s beside",
		answers.Load(), failures.Load(), 2*clients, slices.Max(joined).Round(time.Millisecond), writes,
		time.Since(begun).Round(time.Millisecond), middle(before), slices.Max(before), middle(during), slices.Max(during))
	if worst := slices.Max(joined); worst > patience/2 {
		t.Errorf("a zone took %s to join", worst)
	}
	if worst := slices.Max(during); worst > patience/4 {
		t.Errorf("a change took %s", worst)
	}
	m.noProblems(m.global.API.URL())
}

// askWithoutPause calls a server's API until ctx ends: for long lists, for missing resources, and with bodies that are
// refused.
func askWithoutPause(ctx context.Context, url string, id int, answers, failures *atomic.Int64) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	defer client.CloseIdleConnections()
	large := bytes.Repeat([]byte("type: MeshTimeout\n---\n"), 10_000)
	for n := id; ctx.Err() == nil; n++ {
		method, path, body := http.MethodGet, "/meshes/default/meshtrafficpermissions?size=1000", io.Reader(nil)
		switch n % 4 {
		case 1:
			path = "/meshes/default/dataplanes+insights"
		case 2:
			path = "/meshes/nowhere/meshtimeouts/nothing"
		case 3:
			method, path, body = http.MethodPost, "/_batch?dryRun=true", bytes.NewReader(large)
		}
		req, err := http.NewRequestWithContext(ctx, method, url+path, body)
		if err != nil {
			return
		}
		resp, err := client.Do(req)
		if err != nil {
			failures.Add(1)
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests {
			failures.Add(1)
		}
		answers.Add(1)
	}
}
