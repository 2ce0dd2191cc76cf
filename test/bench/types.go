package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
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

// awaited is a change whose arrival the first so many proxies look for: their messages then contain the sign.
type awaited struct {
	mark int
	sign []byte
	by   int
}

// sawSign records the arrival of the awaited change.
func (p *proxies) sawSign(i int, frame []byte) {
	if a := p.awaited.Load(); a != nil && i < a.by && bytes.Contains(frame, a.sign) {
		p.marks.arrive(i, a.mark)
	}
}

// sendingDataplane returns a Dataplane that sends to benchService.
func sendingDataplane(i int) (path string, doc map[string]any) {
	path, doc = dataplane(i)
	networking, _ := doc["networking"].(map[string]any)
	networking["outbound"] = []any{object{"port": 10_000, "backendRef": serviceRef("MeshService", benchService)}}
	return path, doc
}

// stage is a zone, without a global, in which some types are measured.
type stage struct {
	types []policyType
	// begin writes what all proxies need, and starts the real Envoys with open streams.
	begin func(context.Context, *cluster.Cluster, *cluster.Server) (*streams, error)
	// dataplane is the i-th of the simulated proxies, which are options. There are as many as in all stages, and others.
	dataplane func(i int) (path string, doc map[string]any)
	options   sendingOptions
	others    int
}

// stages are the zones of the table, in its order.
func stages() []stage {
	return []stage{
		{types: policyTypes(), begin: beginPolicies, dataplane: sendingDataplane},
		connections(), names(), gateways(),
	}
}

// types measures the policy types. Measurements from before a failure still count.
func (b *bench) types(ctx context.Context, p plan) *table {
	t := &table{title: fmt.Sprintf("Types of policies: a zone with %d proxies", zoneProxies)}
	for _, one := range stages() {
		if p.policyType != "" {
			one.types = slices.DeleteFunc(one.types, func(typ policyType) bool { return string(typ.typ) != p.policyType })
		}
		if len(one.types) == 0 {
			continue
		}
		pace, err := b.paced(ctx, func() error { return b.measureTypes(ctx, t, p, &one) })
		if err != nil {
			b.failed("types of policies", err)
		}
		t.pace(pace)
	}
	return t
}

// paced measures something, and the floor before and after it, of which it returns the mean: the machine's pace. It is 1 if
// the floor cannot be measured.
func (b *bench) paced(ctx context.Context, measure func() error) (pace float64, err error) {
	before, err := paceOfMachine(ctx)
	if err != nil {
		return 1, fmt.Errorf("floor: %w", err)
	}
	measured := measure()
	after, err := paceOfMachine(ctx)
	if err != nil {
		return 1, errors.Join(measured, fmt.Errorf("floor: %w", err))
	}
	b.say("the floor costs %s and %s times what it did where the goals were set", number(before), number(after))
	return (before + after) / 2, measured
}

// measureTypes measures changes of each type of a stage, for one proxy and for all.
func (b *bench) measureTypes(ctx context.Context, t *table, p plan, of *stage) error {
	// Each type has its own limit, so that on a slow machine the first ones do not use the time of the last.
	ctx, cancel := context.WithTimeout(ctx, time.Duration(1+len(of.types))*patience)
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
	st, err := of.begin(ctx, c, s)
	if st != nil {
		defer st.close()
	}
	if err != nil {
		return err
	}
	if err := fill(ctx, s, zoneProxies+of.others, of.dataplane); err != nil {
		return err
	}
	all := connectSending(ctx, s.Address("xds"), zoneProxies+of.others, newMarks(), of.options)
	defer all.close()
	if err := all.waitReady(); err != nil {
		var logs strings.Builder
		c.Tails(&logs, 15)
		return fmt.Errorf("%w; the ends of the logs:\n%s", err, logs.String())
	}
	for _, typ := range of.types {
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

// beginPolicies writes what all proxies need, and starts a real Envoy that calls itself.
func beginPolicies(ctx context.Context, c *cluster.Cluster, s *cluster.Server) (*streams, error) {
	if err := fillTypes(ctx, s); err != nil {
		return nil, err
	}
	st, err := startApplication(ctx)
	if err != nil {
		return nil, err
	}
	return st, st.startEnvoy(ctx, c, s, nil, nil, serviceRef("MeshService", benchService))
}

// fillTypes writes a service whose one endpoint is the real Envoy, the permission to call it, and the policies that are
// there before streams are opened.
func fillTypes(ctx context.Context, s *cluster.Server) error {
	if err := putBenchService(ctx, s); err != nil {
		return err
	}
	for i, typ := range policyTypes() {
		if i > 0 && !typ.begun { // the first one lets streams go on
			continue
		}
		path, doc, _ := typ.all(0)
		if err := s.API.Put(ctx, path, doc); err != nil {
			return err
		}
	}
	return nil
}

// putBenchService writes benchService, and the permission to call anything.
func putBenchService(ctx context.Context, s *cluster.Server) error {
	if err := putService(ctx, s, benchService, httpSection, "http"); err != nil {
		return err
	}
	everybody := object{"spiffeID": object{"type": "Prefix", "value": "spiffe://"}}
	return s.API.Put(ctx, "/meshes/default/meshtrafficpermissions/"+benchService, object{
		"type": "MeshTrafficPermission", "mesh": "default", "name": benchService, "spec": object{
			"rules": []any{object{"default": object{"allow": []any{everybody}}}}},
	})
}

// putService writes a MeshService whose one endpoint is a section of the real Envoy.
func putService(ctx context.Context, s *cluster.Server, name, section, protocol string) error {
	return s.API.Put(ctx, "/meshes/default/meshservices/"+name, object{
		"type": "MeshService", "mesh": "default", "name": name, "spec": object{
			"selector": object{"dataplaneTags": object{"kuma.io/service": openName}},
			"ports":    []any{object{"name": "main", "port": benchPort, "targetPort": section, "appProtocol": protocol}},
		},
	})
}

// measureType measures a change for all proxies first, then, in each round, for one: a policy for one overrides one for
// all. The policies stay, as in a mesh that uses all types. The first writes, which add policies, count like the others.
func measureType(ctx context.Context, s *cluster.Server, p *proxies, st *streams, t *table, typ *policyType,
	plan plan) error {
	if err := st.reopen(); err != nil {
		return err
	}
	listeners, ended := p.listeners.Load(), st.ended.Load()
	wide, err := p.change(ctx, s, plan.wide, zoneProxies, func(i, mark int) (string, map[string]any) {
		path, doc, sign := typ.all(1 + i)
		p.awaited.Store(&awaited{mark, sign, zoneProxies})
		return path, doc
	})
	if err != nil {
		return fmt.Errorf("a change of all: %w", err)
	}
	t.add(typ.title()+": change of all, until at the last", "ms", goalWide, wide.p50)
	t.add(typ.title()+": change of all, CPU", "ms", goalWideCPU, milliseconds(wide.cpuPerWrite))
	if typ.ofOneProxy() {
		for round := range plan.types {
			narrow, err := p.change(ctx, s, plan.narrow, 1, func(i, mark int) (string, map[string]any) {
				path, doc, sign := typ.one(i%narrowTargets, 1+plan.wide+round*plan.narrow+i)
				p.awaited.Store(&awaited{mark, sign, p.size})
				return path, doc
			})
			if err != nil {
				return fmt.Errorf("a change of one: %w", err)
			}
			t.add(typ.title()+": change of one proxy, p50", "ms", goalNarrow, narrow.p50)
			t.add(typ.title()+": change of one proxy, CPU", "ms", goalNarrowCPU, milliseconds(narrow.cpuPerWrite))
		}
	}
	if err := sleep(ctx, drained); err != nil {
		return err
	}
	lost, moved := st.ended.Load()-ended, p.listeners.Load()-listeners
	t.add(fmt.Sprintf("%s: streams that ended, of %d through a real Envoy", typ.title(), openStreams), "streams", 0,
		float64(lost))
	if moved > 0 && !typ.moves || lost > 0 && !typ.ends {
		return fmt.Errorf("%w: %d listeners were sent, %d open streams ended, want none", errMoved, moved, lost)
	}
	return nil
}
