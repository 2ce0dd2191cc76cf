package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/causeway-mesh/causeway/server/porttest"
)

// proxyTimeout is how long an Envoy may take until it listens.
const proxyTimeout = 20 * time.Second

// Proxy is an Envoy in front of an application.
type Proxy struct {
	*Process
	url string // of the admin interface
}

// ProxyConfig selects the Dataplane or ingress of a proxy.
type ProxyConfig struct {
	Zone *Server
	Mesh string
	// Namespace of the Dataplane; may be empty.
	Namespace, Dataplane string
	// ZoneIngress is the ingress that the proxy is, instead of a Dataplane and its mesh.
	ZoneIngress string
	// Egress is the Dataplane of the egress that the proxy is, instead of Dataplane.
	Egress string
	// XDS is the address at which the proxy finds its zone; the zone's own if it is empty.
	XDS string
	// TokenFile is the file of the proxy's token, if the zone's port for proxies is not on loopback.
	TokenFile string
	// SpireSocket is the socket of the SPIRE agent for the proxy. Envoy is the program, which SPIRE recognises by its
	// path. Both may be empty.
	SpireSocket, Envoy string
	// Bootstrap are more arguments of `causeway-zone bootstrap`.
	Bootstrap []string
}

// StartProxy bootstraps an Envoy as a user would, with `causeway-zone bootstrap`, and waits until its admin interface
// answers. The Envoy may not listen yet: see WaitListeners.
func (c *Cluster) StartProxy(ctx context.Context, cfg ProxyConfig) (*Proxy, error) {
	port, err := porttest.Free()
	if err != nil {
		return nil, err
	}
	admin := fmt.Sprintf("127.0.0.1:%d", port)
	args := []string{"bootstrap", "--xds-address", cmp.Or(cfg.XDS, cfg.Zone.Address("xds")), "--admin-address", admin}
	if cfg.TokenFile != "" {
		_, xds, err := net.SplitHostPort(cfg.Zone.Address("xds"))
		if err != nil {
			return nil, err
		}
		args = []string{"bootstrap", "--xds-address", "grpcs://" + loopback + ":" + xds, "--xds-ca",
			filepath.Join(cfg.Zone.DataDir, "tls", "ca.crt"), "--token-file", cfg.TokenFile, "--admin-address", admin}
	}
	if cfg.SpireSocket != "" {
		args = append(args, "--spire-socket", cfg.SpireSocket)
	}
	switch {
	case cfg.ZoneIngress != "":
		args = append(args, "--zone-ingress", cfg.ZoneIngress)
	case cfg.Egress != "":
		args = append(args, "--egress", cfg.Egress, "--mesh", cfg.Mesh, "--namespace", cfg.Namespace)
	default:
		args = append(args, "--dataplane", cfg.Dataplane, "--mesh", cfg.Mesh, "--namespace", cfg.Namespace)
	}
	bootstrap, err := c.Output(ctx, nil, "causeway-zone", append(args, cfg.Bootstrap...)...)
	if err != nil {
		return nil, err
	}
	name := "envoy-" + cfg.Zone.Name() + "-" + cfg.Dataplane + cfg.Egress + cfg.ZoneIngress
	file := filepath.Join(c.cfg.Dir, name+".yaml")
	if err := os.WriteFile(file, bootstrap, 0o600); err != nil {
		return nil, err
	}
	process, err := c.process(name, cmp.Or(cfg.Envoy, c.cfg.Envoy), []string{
		"-c", file, "--concurrency", "1", "--disable-hot-restart", "--log-level", "warning", "--drain-time-s", "1",
	})
	if err != nil {
		return nil, err
	}
	p := &Proxy{Process: process, url: "http://" + admin}
	return p, p.Start(ctx)
}

// Start runs the Envoy, also after Kill or Stop, and waits for its admin interface.
func (p *Proxy) Start(ctx context.Context) error {
	if err := p.Process.Start(); err != nil {
		return err
	}
	return Until(ctx, proxyTimeout, "the admin interface of "+p.Name(), func(ctx context.Context) error {
		if err := p.Alive(); err != nil {
			return err
		}
		_, err := p.ask(ctx, "/server_info")
		return err
	})
}

// AdminURL returns the base address of Envoy's admin interface.
func (p *Proxy) AdminURL() string { return p.url }

// WaitListeners waits until the Envoy listens on all the given loopback ports.
func (p *Proxy) WaitListeners(ctx context.Context, ports ...int) error {
	return Until(ctx, proxyTimeout, fmt.Sprintf("the listeners of %s on %v", p.Name(), ports),
		func(ctx context.Context) error {
			if err := p.Alive(); err != nil {
				return err
			}
			raw, err := p.ask(ctx, "/listeners?format=text")
			if err != nil {
				return err
			}
			for _, port := range ports {
				if !bytes.Contains(raw, fmt.Appendf(nil, "::127.0.0.1:%d\n", port)) {
					return fmt.Errorf("no listener on %d; the end of its log:\n%s", port, p.Tail(5))
				}
			}
			return nil
		})
}

// Stats reads the counters and gauges whose names match the regular expression.
func (p *Proxy) Stats(ctx context.Context, filter string) (map[string]uint64, error) {
	raw, err := p.ask(ctx, "/stats?format=json&filter="+url.QueryEscape(filter))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Stats []struct {
			Name  string          `json:"name"`
			Value json.RawMessage `json:"value"`
		} `json:"stats"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, err
	}
	stats := map[string]uint64{}
	for _, s := range answer.Stats {
		var v uint64
		if s.Name != "" && json.Unmarshal(s.Value, &v) == nil {
			stats[s.Name] = v
		}
	}
	return stats, nil
}

// ListenerStats returns the statistics that change when Envoy receives an update of its listeners.
func (p *Proxy) ListenerStats(ctx context.Context) (map[string]uint64, error) {
	return p.Stats(ctx, `^listener_manager\.(listener_(added|modified|in_place_updated|removed|create_failure|create_success)|lds\.(update_success|update_rejected))$`)
}

// ConfigDump returns the Envoy's whole configuration, as JSON.
func (p *Proxy) ConfigDump(ctx context.Context) (string, error) {
	raw, err := p.ask(ctx, "/config_dump")
	return string(raw), err
}

// ask reads a page of the admin interface.
func (p *Proxy) ask(ctx context.Context, path string) ([]byte, error) { return fetch(ctx, p.url+path) }
