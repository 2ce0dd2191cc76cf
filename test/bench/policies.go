package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
)

const (
	// otherMatchers is the number of matchers in each policy besides the one with the mark.
	otherMatchers = 4
	// writers is the number of concurrent writers that fill a server before a measurement.
	writers = 16
	// noMark is for a policy that no receiver awaits.
	noMark = -1
)

func dataplaneName(i int) string { return fmt.Sprintf("bench-dp-%d", i) }

// permission returns the i-th policy, for the proxies that target selects, or for all if it is nil.
func permission(i, mark int, target map[string]any) (path string, doc map[string]any) {
	if target == nil {
		target = map[string]any{"kind": "Mesh"}
	}
	matcher := func(kind, id string) map[string]any {
		return map[string]any{"spiffeID": map[string]any{"type": kind, "value": id}}
	}
	var allow []any
	for k := range otherMatchers {
		allow = append(allow, matcher("Prefix", fmt.Sprintf("spiffe://default.zone.mesh.local/ns/n%d/sa/s%d", i, k)))
	}
	last := "spiffe://bench/nobody"
	if mark != noMark {
		last = fmt.Sprintf("%s%d", markPrefix, mark)
	}
	allow = append(allow, matcher("Exact", last))
	name := fmt.Sprintf("bench-%d", i)
	return "/meshes/default/meshtrafficpermissions/" + name, map[string]any{
		"type": "MeshTrafficPermission", "mesh": "default", "name": name,
		"spec": map[string]any{"targetRef": target,
			"rules": []any{map[string]any{"default": map[string]any{"allow": allow}}}},
	}
}

// ofProxy returns a target that selects one Dataplane.
func ofProxy(i int) map[string]any {
	return map[string]any{"kind": "Dataplane", "labels": map[string]any{"proxy": dataplaneName(i)}}
}

func dataplane(i int) (path string, doc map[string]any) {
	name := dataplaneName(i)
	inbound := map[string]any{"port": 8080, "servicePort": 9080, "name": "http-port", "tags": map[string]any{
		"kuma.io/service": fmt.Sprintf("svc-%d", i%50), "kuma.io/protocol": "http",
	}}
	return "/meshes/default/dataplanes/" + name, map[string]any{
		"type": "Dataplane", "mesh": "default", "name": name, "labels": map[string]any{"proxy": name},
		"networking": map[string]any{"address": fmt.Sprintf("127.1.%d.%d", i/250, 1+i%250), "inbound": []any{inbound}},
	}
}

// fill writes documents 0 to n-1 concurrently.
func fill(ctx context.Context, s *cluster.Server, n int, doc func(i int) (string, map[string]any)) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range writers {
		g.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				path, d := doc(i)
				if err := s.API.Put(ctx, path, d); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}
