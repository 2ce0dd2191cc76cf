package e2e

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/resources/store/bolt"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/peer"
	"github.com/causeway-mesh/causeway/zone/identity"
)

var restartProxies = flag.Int("restart-proxies", 400, "how many proxies TestRestartSendsNothing has")

// restartGroups is the number of groups of proxies, each with its own permission. Even groups have an HTTP inbound, odd
// ones a TCP inbound.
const restartGroups = 50

// restart is a zone with many proxies.
type restart struct {
	*mesh
	zone    *cluster.Server
	proxies []*peer.Proxy
}

// TestRestartSendsNothing checks that a zone that is stopped, or killed, and restarted on the same data sends its
// proxies nothing, not even identities, in both forms of the protocol. It sends only what changed meanwhile, to the
// affected proxies.
func TestRestartSendsNothing(t *testing.T) {
	t.Parallel()
	r := &restart{mesh: newMesh(t, "zone-1")}
	r.zone = r.zones["zone-1"]
	r.fill()
	r.connect()
	// More callers are allowed: filters change, and the chains of TCP inbounds stay.
	r.apply(r.global, restartPermission("more", "", "more-may-get-in"))
	r.know("more-may-get-in", func(int) bool { return true })

	stop := func() { r.must(r.zone.Stop(t.Context())) }
	kill := func() { r.onDisk(r.zone); r.zone.Kill() }
	for _, name := range []string{"SIGTERM", "kill -9"} {
		map[string]func(){"SIGTERM": stop, "kill -9": kill}[name]()
		took := r.restarted(t)
		r.came(name, func(int) []string { return nil })
		r.metric(`causeway_identity_kept_total{outcome="used"}`, float64(len(r.proxies)))
		r.metric("causeway_identity_issued_total", 0)
		t.Logf("%s: %d proxies have what they should %s after the zone was ready, and were sent nothing", name,
			len(r.proxies), took.Round(time.Millisecond))
	}

	stop()
	r.apply(r.global, restartPermission("of-0", "g-0", "changed-meanwhile"))
	r.restarted(t)
	r.know("changed-meanwhile", func(i int) bool { return i%restartGroups == 0 })
	r.came("a policy changed", func(i int) []string {
		if i%restartGroups == 0 {
			return []string{"self_inbound_dp_main_rbac_http"}
		}
		return nil
	})

	stop()
	r.rotate(true)
	r.restarted(t)
	r.came("another authority signs", func(i int) []string {
		return []string{fmt.Sprintf("identity_cert:default/proxy-%d", i), "identity_trust:default"}
	})
	r.metric(`causeway_identity_kept_total{outcome="other-authority"}`, float64(len(r.proxies)))
}

// restartPermission returns a permission that allows a caller on a group, or on all.
func restartPermission(name, group, who string) string {
	target := "{kind: Mesh}"
	if group != "" {
		target = "{kind: Dataplane, labels: {group: " + group + "}}"
	}
	return fmt.Sprintf("{type: MeshTrafficPermission, mesh: default, name: %s, spec: {targetRef: %s, rules: [{default: {allow: [{spiffeId: {type: Exact, value: \"spiffe://td/%s\"}}]}}]}}\n", name, target, who)
}

// fill writes the Dataplanes in the zone, and the permissions on the global.
func (r *restart) fill() {
	r.t.Helper()
	var permissions []string
	for g := range restartGroups {
		permissions = append(permissions, restartPermission(fmt.Sprint("of-", g), fmt.Sprint("g-", g),
			fmt.Sprintf("of-%d.", g)))
	}
	r.apply(r.global, strings.Join(permissions, "---\n"))
	var dataplanes []string
	for i := range *restartProxies {
		protocol := [2]string{"http", "tcp"}[i%restartGroups%2]
		dataplanes = append(dataplanes, fmt.Sprintf("{type: Dataplane, mesh: default, name: proxy-%d, labels: {group: g-%d}, networking: {address: 127.0.0.1, inbound: [{name: main, port: 10000, servicePort: 20000, protocol: %s}]}}\n",
			i, i%restartGroups, protocol))
	}
	for chunk := range slices.Chunk(dataplanes, 500) {
		r.apply(r.zone, strings.Join(chunk, "---\n"))
	}
	r.eventually("the permissions to come to the zone", func(ctx context.Context) error {
		all, err := byDisplayName(ctx, r.zone, "/meshes/default/meshtrafficpermissions")
		if err == nil && len(all) < restartGroups {
			err = errNotYet
		}
		return err
	})
}

// connect connects every proxy, one in ten with the older form of the protocol, and waits until all have everything.
func (r *restart) connect() {
	r.t.Helper()
	for i := range *restartProxies {
		p, err := peer.ConnectProxy(r.t.Context(), peer.ProxyConfig{
			XDS: r.zone.Address("xds"), Mesh: "default", Dataplane: fmt.Sprint("proxy-", i), StateOfTheWorld: i%10 == 3,
			Secrets: true,
		})
		r.must(err)
		r.t.Cleanup(func() { _ = p.Close() })
		r.proxies = append(r.proxies, p)
	}
	r.all("to have all", func(_ int, p *peer.Proxy) bool { return p.Complete() })
	r.know("of-", func(int) bool { return true })
	// A proxy requests routes when it reconnects: here for the first time.
	for _, p := range r.proxies {
		r.must(p.Reconnect(r.t.Context()))
	}
	r.answered()
}

// restarted starts the zone and reconnects the proxies, and returns the time until all were answered.
func (r *restart) restarted(t *testing.T) time.Duration {
	t.Helper()
	r.must(r.zone.Start(t.Context()))
	began := time.Now()
	var g errgroup.Group
	g.SetLimit(50)
	for _, p := range r.proxies {
		g.Go(func() error { return p.Reconnect(t.Context()) })
	}
	r.must(g.Wait())
	r.answered()
	return time.Since(began)
}

// answered waits until every proxy has been answered. Like Envoy, a proxy dials again if its handshake took longer than
// the zone allows, because the machine is busy.
func (r *restart) answered() {
	r.t.Helper()
	for _, p := range r.proxies {
		r.eventually("every proxy to be answered", func(ctx context.Context) error {
			err := p.Err()
			switch {
			case status.Code(err) == codes.Unavailable && len(p.Came()) == 0:
				if err := p.Reconnect(r.t.Context()); err != nil {
					return cluster.Final(err)
				}
				return errNotYet
			case err != nil:
				return cluster.Final(err)
			case !p.CaughtUp():
				return errNotYet
			}
			return nil
		})
	}
}

// all waits until a condition holds for every proxy.
func (r *restart) all(what string, condition func(i int, p *peer.Proxy) bool) {
	r.t.Helper()
	next := 0
	r.eventually("the proxies "+what, func(context.Context) error {
		for ; next < len(r.proxies); next++ {
			p := r.proxies[next]
			if err := p.Err(); err != nil {
				return cluster.Final(fmt.Errorf("proxy-%d: %w", next, err))
			}
			if !condition(next, p) {
				return fmt.Errorf("proxy-%d is not yet", next)
			}
		}
		return nil
	})
}

// know waits until the selected proxies have a mark in one of their filters.
func (r *restart) know(mark string, meant func(i int) bool) {
	r.t.Helper()
	r.all("to know "+mark, func(i int, p *peer.Proxy) bool { return !meant(i) || knows(p, mark) == nil })
}

// came checks that since they reconnected the proxies have received exactly these resources.
func (r *restart) came(after string, want func(i int) []string) {
	r.t.Helper()
	wrong := 0
	for i, p := range r.proxies {
		got := p.Came()
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, want(i)) {
			if wrong++; wrong <= 5 {
				r.t.Errorf("%s: proxy-%d was sent %q, want %q", after, i, got, want(i))
			}
		}
	}
	if wrong > 0 {
		r.t.Fatalf("%s: %d of %d proxies were sent something else", after, wrong, len(r.proxies))
	}
}

// onDisk waits until the record of everything sent to proxies is on disk.
func (m *mesh) onDisk(zone *cluster.Server) {
	m.t.Helper()
	m.eventually("what proxies were given to be on the disk", func(ctx context.Context) error {
		pending, err := zone.Metric(ctx, "causeway_holdings_pending")
		if err == nil && pending > 0 {
			err = errNotYet
		}
		return err
	})
}

func (r *restart) metric(name string, want float64) {
	r.t.Helper()
	got, err := r.zone.Metric(r.t.Context(), name)
	r.must(err)
	if got != want {
		r.t.Errorf("%s is %v, want %v", name, got, want)
	}
}

// rotate creates another authority, while the zone does not run, and returns its id. It signs at once, or is the next
// to sign.
func (r *restart) rotate(atOnce bool) (id string) {
	r.t.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: r.zone.DataDir})
	r.must(err)
	store, err := bolt.Open(r.t.Context(), bolt.Config{Path: filepath.Join(r.zone.DataDir, "causeway.db"),
		Log: slog.New(slog.DiscardHandler)})
	r.must(err)
	authorities := identity.NewAuthorities(identity.Config{Keeper: secrets.NewKeeper(store, box), Store: store,
		Zone: r.zone.Name()})
	next, err := authorities.Prepare(r.t.Context(), "default")
	r.must(err)
	if atOnce {
		r.must(authorities.Promote(r.t.Context(), "default", next))
	}
	r.must(store.Close())
	return next
}
