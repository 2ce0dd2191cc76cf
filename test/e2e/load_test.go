package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/server/programtest"
	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/peer"
)

// TestManyProxies checks that proxies get what concerns them and nothing else, in both forms of the protocol.
func TestManyProxies(t *testing.T) {
	t.Parallel()
	for _, form := range []struct {
		name            string
		stateOfTheWorld bool
	}{{"delta", false}, {"state of the world", true}} {
		t.Run(form.name, func(t *testing.T) {
			m := newCluster(t)
			zone := m.startZone("zone-1")
			proxies := m.manyProxies(zone, form.stateOfTheWorld)
			quiet := proxies[1].Messages()
			for i := range loadWrites {
				mark := fmt.Sprintf("mark-%d", i)
				m.must(zone.API.Put(t.Context(), loadPath(0), proxyPolicy(0, mark)))
				m.eventually(mark, func(context.Context) error { return knows(proxies[0], mark) })
			}
			if now := proxies[1].Messages(); now != quiet {
				t.Errorf("a proxy that no write concerned got %d messages", now-quiet)
			}
			m.must(zone.API.Put(t.Context(), "/meshes/default/meshtrafficpermissions/wide", widePolicy()))
			for _, p := range proxies {
				m.eventually("the policy for all", func(context.Context) error { return knows(p, "for-all") })
				if err := p.Err(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// manyProxies writes Dataplanes with one policy each, connects a proxy for each, and waits until each has its policy.
func (m *mesh) manyProxies(zone *cluster.Server, stateOfTheWorld bool) []*peer.Proxy {
	m.t.Helper()
	for i := range loadProxies {
		name := fmt.Sprintf("proxy-%d", i)
		m.must(zone.API.Put(m.t.Context(), "/meshes/default/dataplanes/"+name, map[string]any{
			"type": "Dataplane", "mesh": "default", "name": name, "labels": map[string]string{"proxy": name},
			"networking": map[string]any{"address": "127.0.0.1", "inbound": []any{map[string]any{
				"name": "http-port", "port": 10000 + i, "servicePort": 20000 + i, "protocol": "http",
			}}},
		}))
		m.must(zone.API.Put(m.t.Context(), loadPath(i), proxyPolicy(i, fmt.Sprintf("of-proxy-%d.", i))))
	}
	proxies := make([]*peer.Proxy, loadProxies)
	for i := range proxies {
		p, err := peer.ConnectProxy(m.t.Context(), peer.ProxyConfig{
			XDS: zone.Address("xds"), Mesh: "default", Dataplane: fmt.Sprintf("proxy-%d", i), StateOfTheWorld: stateOfTheWorld,
		})
		m.must(err)
		m.t.Cleanup(func() { _ = p.Close() })
		proxies[i] = p
	}
	for i, p := range proxies {
		m.eventually("every proxy's own policy",
			func(context.Context) error { return knows(p, fmt.Sprintf("of-proxy-%d.", i)) })
	}
	return proxies
}

func proxyPolicy(i int, mark string) map[string]any {
	p := loadPolicy(i, mark)
	p["spec"].(map[string]any)["targetRef"] = map[string]any{"kind": "Dataplane",
		"labels": map[string]any{"proxy": fmt.Sprintf("proxy-%d", i)}}
	return p
}

func widePolicy() map[string]any {
	p := loadPolicy(0, "for-all")
	p["name"] = "wide"
	return p
}

// knows checks that one of the proxy's filters has the mark.
func knows(p *peer.Proxy, mark string) error {
	if err := p.Err(); err != nil {
		return cluster.Final(err)
	}
	for _, raw := range p.Have(peer.ExtensionType) {
		if strings.Contains(string(raw), mark) {
			return nil
		}
	}
	return errNotYet
}

// TestLoadGenerators runs the load generators beside the repository, if they exist. The tests above check the same with
// our own peers.
func TestLoadGenerators(t *testing.T) {
	t.Parallel()
	bin, err := programtest.Build(t.Context(), programtest.Load)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "kdsload")); err != nil {
		t.Log("no load generators beside the repository: nothing more to run")
		return
	}
	m := newAnonymousMesh(t)
	m.generate(filepath.Join(bin, "kdsload"), "-kds", "grpcs://"+m.global.Address("kds"), "-api", m.global.API.URL(),
		"-pid", fmt.Sprint(m.global.PID()), "-zones", fmt.Sprint(loadZones), "-policies", fmt.Sprint(loadPolicies),
		"-writes", "20", "-burst", "50")
	alone := newCluster(t)
	zone := alone.startZone("alone")
	for _, mode := range []string{"delta", "sotw"} {
		alone.generate(filepath.Join(bin, "proxyload"), "-xds", "grpc://"+zone.Address("xds"), "-api", zone.API.URL(),
			"-pid", fmt.Sprint(zone.PID()), "-proxies", fmt.Sprint(loadProxies), "-policies", "50", "-mode", mode)
	}
}

// generate runs a load generator. Its status is 0 if everything arrived.
func (m *mesh) generate(program string, args ...string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	m.t.Logf("%s %s\n%s", filepath.Base(program), strings.Join(args, " "), out)
	if err != nil {
		m.t.Errorf("%s: %v", filepath.Base(program), err)
	}
}
