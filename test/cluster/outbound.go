package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/causeway-mesh/causeway/server/porttest"
)

// outbounds gives each outbound a port.
func (w *Workload) outbounds() ([]any, error) {
	fields := []any{}
	for _, o := range w.Outbounds {
		port, err := porttest.Free()
		if err != nil {
			return nil, err
		}
		w.outbound[o.Name] = port
		fields = append(fields, map[string]any{"address": loopback, "port": port, "backendRef": o.BackendRef})
	}
	return fields, nil
}

// Outbound returns the loopback port of the outbound with that name. It panics if there is none, which is a mistake of
// the caller.
func (w *Workload) Outbound(name string) int {
	port, ok := w.outbound[name]
	if !ok {
		panic(fmt.Sprintf("workload %s has no outbound %q", w.Name, name))
	}
	return port
}

// Call reaches another workload as an application does: by a plain request to its own outbound.
func (w *Workload) Call(ctx context.Context, outbound, path string) (status int, body string, err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: callTimeout}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("http://%s:%d%s", loopback, w.Outbound(outbound), path), nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(raw), err
}

// StartIngress writes a ZoneIngress and starts its Envoy. It listens once the zone has a service.
func (c *Cluster) StartIngress(ctx context.Context, zone *Server, name string) (*Proxy, error) {
	port, err := porttest.Free()
	if err != nil {
		return nil, err
	}
	doc := map[string]any{"type": "ZoneIngress", "name": name, "networking": map[string]any{"address": loopback,
		"port": port}}
	if err := zone.API.Put(ctx, "/zoneingresses/"+name, doc); err != nil {
		return nil, err
	}
	return c.StartProxy(ctx, ProxyConfig{Zone: zone, ZoneIngress: name})
}
