package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// enforcedWrites is the number of writes, each of which turns the answers of the Envoy.
const enforcedWrites = 300

// askEvery is how long the client waits after an answer. One that asks without a pause takes a processor and a half from
// the servers, which would have them to themselves elsewhere.
const askEvery = 200 * time.Microsecond

// measureEnforced measures the time from a write at the global until a real Envoy of another zone answers by it. A client
// asks the Envoy again askEvery after an answer.
func (b *bench) measureEnforced(ctx context.Context) (*table, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	envoy, err := cluster.FindEnvoy("")
	if err != nil {
		return nil, err
	}
	b.started++
	c, err := cluster.New(cluster.Config{Bin: b.bin, Envoy: envoy, Dir: filepath.Join(b.dir, fmt.Sprint(b.started))})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	g, err := c.StartGlobal(ctx, cluster.GlobalConfig{Args: []string{"--log-level", "warn"}})
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, g, usualPolicies, func(i int) (string, map[string]any) {
		return permission(i, noMark, ofProxy(i))
	}); err != nil {
		return nil, err
	}
	z, err := c.StartZone(ctx, cluster.ZoneConfig{Name: "zone-1", Global: g, Args: []string{"--log-level", "warn"}})
	if err != nil {
		return nil, err
	}
	backend, err := c.StartWorkload(ctx, cluster.WorkloadConfig{Zone: z, Mesh: "default", Namespace: "shop", Name: "backend",
		ServiceAccount: "backend", Inbounds: []cluster.InboundConfig{{Name: "http", Protocol: cluster.ProtocolHTTP}}})
	if err != nil {
		return nil, err
	}
	defer backend.Close()
	id, err := cluster.RegisterClient(ctx, cluster.WorkloadConfig{Zone: z, Mesh: "default", Namespace: "shop", Name: "caller",
		ServiceAccount: "caller"}, "zone-1")
	if err != nil {
		return nil, err
	}
	caller := cluster.NewClient(id, false)
	defer caller.Close()
	e := &enforcement{global: g, caller: caller, port: backend.Inbound("http").Port}
	if _, err := e.set(ctx, "allow", http.StatusOK); err != nil { // also waits until all is there
		return nil, err
	}
	var took []time.Duration
	for i := range enforcedWrites {
		verb, want := "deny", http.StatusForbidden
		if i%2 == 1 {
			verb, want = "allow", http.StatusOK
		}
		one, err := e.set(ctx, verb, want)
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	t := &table{title: fmt.Sprintf("Enforced: a write at the global, until a real Envoy of a zone answers by it; %d policies", usualPolicies)}
	t.add("p50", "ms", 5, percentile(took, 50))
	t.add("p99", "ms", 15, percentile(took, 99))
	return t, nil
}

// enforcement is a global, and a caller of an Envoy.
type enforcement struct {
	global *cluster.Server
	caller *cluster.Client
	port   int
}

// set writes the caller's permission, and returns how long it took until the Envoy answered with the status.
func (e *enforcement) set(ctx context.Context, verb string, want int) (time.Duration, error) {
	start := time.Now()
	if err := e.global.API.Put(ctx, "/meshes/default/meshtrafficpermissions/turned", map[string]any{
		"type": "MeshTrafficPermission", "mesh": "default", "name": "turned",
		"spec": map[string]any{"targetRef": map[string]any{"kind": "Mesh"}, "rules": []any{map[string]any{"default": map[string]any{
			verb: []any{map[string]any{"spiffeID": map[string]any{"type": "Exact", "value": e.caller.ID()}}}}}}},
	}); err != nil {
		return 0, err
	}
	for {
		status, _, err := e.caller.Get(ctx, e.port, "/")
		if err != nil {
			return 0, err
		}
		if status == want {
			return time.Since(start), nil
		}
		time.Sleep(askEvery)
	}
}
