package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// The goals for a change of a policy of any type.
const (
	goalNarrow, goalNarrowCPU = 5, 2
	goalWide, goalWideCPU     = 500, 400
	// narrowTargets is the number of proxies that have their own policy of a type.
	narrowTargets = 10
	// drained is when the streams of a replaced listener have ended: Envoy runs with a drain time of 1 s.
	drained = 2 * time.Second
)

// errMoved reports that changes of a type that should move no listener moved one, or ended open streams.
var errMoved = errors.New("connections were not kept")

// awaited is a change whose arrival proxies look for: their messages then contain the sign.
type awaited struct {
	mark int
	sign []byte
}

// sawSign records the arrival of the awaited change.
func (p *proxies) sawSign(i int, frame []byte) {
	if a := p.awaited.Load(); a != nil && bytes.Contains(frame, a.sign) {
		p.marks.arrive(i, a.mark)
	}
}

// sendingDataplane returns a Dataplane that sends to benchService.
func sendingDataplane(i int) (path string, doc map[string]any) {
	path, doc = dataplane(i)
	networking, _ := doc["networking"].(map[string]any)
	networking["outbound"] = []any{object{"port": 10_000, "backendRef": object{"kind": "MeshService",
		"name": benchService, "port": 80}}}
	return path, doc
}

// types measures the policy types. Measurements from before a failure still count.
func (b *bench) types(ctx context.Context, p plan) *table {
	t := &table{title: fmt.Sprintf("Types of policies: a zone with %d proxies", zoneProxies)}
	if err := b.measureTypes(ctx, t, p); err != nil {
		b.failed("types of policies", err)
	}
	return t
}

// measureTypes measures changes of policies of each type, for one proxy and for all, in a zone without a global.
func (b *bench) measureTypes(ctx context.Context, t *table, p plan) error {
	// Each type has its own limit, so that on a slow machine the first ones do not use the time of the last.
	ctx, cancel := context.WithTimeout(ctx, time.Duration(1+len(policyTypes()))*patience)
	defer cancel()
	envoy, err := cluster.FindEnvoy("")
	if err != nil {
		return err
	}
	b.started++
	c, err := cluster.New(cluster.Config{Bin: b.bin, Envoy: envoy, Dir: filepath.Join(b.dir, fmt.Sprint(b.started))})
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.StartZone(ctx, cluster.ZoneConfig{Name: "bench", Args: []string{"--log-level", "warn"}})
	if err != nil {
		return err
	}
	if err := fillTypes(ctx, s); err != nil {
		return err
	}
	st, err := startStreams(ctx, c, s)
	if st != nil {
		defer st.close()
	}
	if err != nil {
		return err
	}
	all := connectSending(ctx, s.Address("xds"), zoneProxies, newMarks())
	defer all.close()
	if err := all.waitReady(); err != nil {
		return err
	}
	for _, typ := range policyTypes() {
		if p.policyType != "" && string(typ.typ) != p.policyType {
			continue
		}
		b.say("types: %s", typ.title())
		limited, done := context.WithTimeout(all.ctx, patience)
		err := measureType(limited, s, all, st, t, &typ, p)
		done()
		if err != nil {
			if all.ctx.Err() != nil {
				return err
			}
			if errors.Is(err, errMoved) {
				b.failures = append(b.failures, fmt.Sprintf("%s: %v", typ.title(), err))
			} else {
				b.failed(typ.title(), err)
			} // the other types still count
		}
	}
	return nil
}

// fillTypes writes what all proxies need: a service whose one endpoint is the real Envoy, and the permission to call
// it.
func fillTypes(ctx context.Context, s *cluster.Server) error {
	if err := s.API.Put(ctx, "/meshes/default/meshservices/"+benchService, object{
		"type": "MeshService", "mesh": "default", "name": benchService, "spec": object{
			"selector": object{"dataplaneTags": object{"kuma.io/service": openName}},
			"ports":    []any{object{"name": "http", "port": 80, "targetPort": "http-port", "appProtocol": "http"}},
		},
	}); err != nil {
		return err
	}
	everybody := object{"spiffeID": object{"type": "Prefix", "value": "spiffe://"}}
	if err := s.API.Put(ctx, "/meshes/default/meshtrafficpermissions/"+benchService, object{
		"type": "MeshTrafficPermission", "mesh": "default", "name": benchService, "spec": object{
			"rules": []any{object{"default": object{"allow": []any{everybody}}}}},
	}); err != nil {
		return err
	}
	for i, typ := range policyTypes() {
		if i > 0 && !typ.begun { // the first one lets streams go on
			continue
		}
		path, doc, _ := typ.policy("bench-"+typ.list, 0, object{"kind": "Mesh"})
		if err := s.API.Put(ctx, path, doc); err != nil {
			return err
		}
	}
	return fill(ctx, s, zoneProxies, sendingDataplane)
}

// measureType measures a change for all proxies first, then for one: a policy for one overrides one for all. The
// policies stay, as in a mesh that uses all types. The first writes, which add policies, count like the others.
func measureType(ctx context.Context, s *cluster.Server, p *proxies, st *streams, t *table, typ *policyType,
	plan plan) error {
	if err := st.reopen(); err != nil {
		return err
	}
	listeners, ended := p.listeners.Load(), st.ended.Load()
	write := func(name string, n, mark int, target object) (string, map[string]any) {
		path, doc, sign := typ.policy(name, n, target)
		p.awaited.Store(&awaited{mark, sign})
		return path, doc
	}
	wide, err := p.change(ctx, s, plan.wide, zoneProxies, func(i, mark int) (string, map[string]any) {
		return write("bench-"+typ.list, 1+i, mark, object{"kind": "Mesh"})
	})
	if err != nil {
		return fmt.Errorf("a change of all: %w", err)
	}
	t.add(typ.title()+": change of all, until at the last", "ms", goalWide, wide.p50)
	t.add(typ.title()+": change of all, CPU", "ms", goalWideCPU, milliseconds(wide.cpuPerWrite))
	if !typ.meshOnly {
		narrow, err := p.change(ctx, s, plan.narrow, 1, func(i, mark int) (string, map[string]any) {
			of := i % narrowTargets
			return write(fmt.Sprintf("bench-%s-%d", typ.list, of), 1+plan.wide+i, mark, ofProxy(of))
		})
		if err != nil {
			return fmt.Errorf("a change of one: %w", err)
		}
		t.add(typ.title()+": change of one proxy, p50", "ms", goalNarrow, narrow.p50)
		t.add(typ.title()+": change of one proxy, CPU", "ms", goalNarrowCPU, milliseconds(narrow.cpuPerWrite))
	}
	if err := sleep(ctx, drained); err != nil {
		return err
	}
	lost, moved := st.ended.Load()-ended, p.listeners.Load()-listeners
	t.add(fmt.Sprintf("%s: streams that ended, of %d through a real Envoy", typ.title(), openStreams), "streams", 0,
		float64(lost))
	if lost+moved > 0 && !typ.moves {
		return fmt.Errorf("%w: %d listeners were sent, %d open streams ended, want none", errMoved, moved, lost)
	}
	return nil
}
