package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// moved is a zone whose connection to its global a test redirects.
type moved struct {
	*mesh
	link *cluster.Link
	zone *cluster.Server
}

func newMoved(t *testing.T) *moved {
	t.Helper()
	m := &moved{mesh: newMesh(t)}
	var err error
	m.link, err = cluster.NewLink(t.Context(), m.global.Address("kds"))
	m.must(err)
	t.Cleanup(func() { _ = m.link.Close() })
	m.zone, err = m.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: m.global, Link: m.link})
	m.must(err)
	m.zones["zone-1"] = m.zone
	m.apply(m.global, timeout("early", "10s"))
	m.arrives(m.zone, "early")
	return m
}

// TestFaultsMovedBackAndForth moves a zone repeatedly between its global and one that continues from a copy of its data
// folder, during writes to both. Each time, what only the other one has is held and reported. In the end the zone has
// what its own global has.
func TestFaultsMovedBackAndForth(t *testing.T) {
	t.Parallel()
	m := newMoved(t)
	m.must(m.global.Stop(t.Context()))
	out, err := exec.CommandContext(t.Context(), "cp", "-a", m.global.DataDir,
		filepath.Join(m.Dir(), "copy")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m.must(m.global.Start(t.Context()))
	other, err := m.StartGlobal(t.Context(), cluster.GlobalConfig{Name: "copy"})
	m.must(err)
	rounds := 1
	if *faultsLong {
		rounds = 10
	}
	for round := range rounds {
		own, others := fmt.Sprint("own-", round), fmt.Sprint("others-", round)
		m.apply(m.global, timeout(own, "10s"))
		m.arrives(m.zone, own)
		m.link.Lead(other.Address("kds"))
		m.apply(other, timeout(others, "10s"))
		m.arrives(m.zone, others)
		m.holds(other, m.zone, "early", own, others)
		m.apply(m.zone, timeout(fmt.Sprint("zones-", round), "10s"))
		m.arrives(other, fmt.Sprint("zones-", round))
		m.link.Lead(m.global.Address("kds"))
		m.apply(m.global, timeout("early", fmt.Sprintf("%ds", 20+round)))
		m.eventually("the zone to have what its global says",
			func(ctx context.Context) error { return sameTimeouts(ctx, m.global, m.zone) })
		m.noProblems(m.global.API.URL())
		m.noProblems(m.zone.API.URL())
	}
}

// TestFaultsForeignServer puts others at the address of a zone's global: a global with another CA, a web server, and a
// silent one. The zone keeps its resources, accepts writes, reports that it has no session and why, ends on SIGTERM in
// time, and continues with its own global.
func TestFaultsForeignServer(t *testing.T) {
	t.Parallel()
	m := newMoved(t)
	stranger, err := m.StartGlobal(t.Context(), cluster.GlobalConfig{Name: "stranger"})
	m.must(err)
	web := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	certificate := web.TLS.Certificates
	mute := listens(t, func(c net.Conn) { <-t.Context().Done() })
	noGRPC := listens(t, func(c net.Conn) {
		_ = tls.Server(c, &tls.Config{Certificates: certificate, MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
	})
	for name, address := range map[string]string{"a global with another CA": stranger.Address("kds"),
		"a web server": web.Listener.Addr().String(), "one without TLS": plain.Listener.Addr().String(),
		"one that says nothing": mute, "one that hangs up": noGRPC} {
		if !*faultsLong && address != mute && address != stranger.Address("kds") {
			continue
		}
		m.link.Lead(address)
		late := "while there is " + name
		late = strings.ReplaceAll(strings.ToLower(late), " ", "-")
		m.apply(m.zone, timeout(late, "10s"))
		m.apply(m.global, timeout("of-the-global-"+late, "10s"))
		do := m.names(m.zone.API.URL(), "sync", "zone-1", "")
		m.names(m.global.API.URL(), "zone", "zone-1", "offline since")
		all, err := timeouts(t.Context(), m.zone)
		m.must(err)
		if _, ok := all["early"]; !ok {
			t.Errorf("%s: the zone lost a policy", name)
		}
		took, err := m.ends(m.zone)
		if err != nil {
			t.Errorf("%s: the zone ended after %s: %v", name, took, err)
		}
		m.must(m.zone.Start(t.Context()))
		m.link.Lead(m.global.Address("kds"))
		begun := time.Now()
		m.arrives(m.global, late)
		m.arrives(m.zone, "of-the-global-"+late)
		m.noProblems(m.zone.API.URL())
		m.noProblems(m.global.API.URL())
		t.Logf("%s: doctor said %q; both agreed after %s", name, do, time.Since(begun).Round(time.Millisecond))
	}
	if all, err := timeouts(t.Context(), stranger); err != nil || len(all) > 0 {
		t.Errorf("the stranger was told %v (%v)", all, err)
	}
}

// listens serves connections on loopback with fn, each until fn returns.
func listens(t *testing.T, fn func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fn(c)
			}()
		}
	}()
	return l.Addr().String()
}

// TestFaultsMadeAnew deletes and recreates a policy 20 times while a zone is away, and ends with another value, with
// none, or with one where there was none. It deletes two meshes, in which the zone has written meanwhile, and recreates
// one of them at once and the other one later. The zone converges to its global, and loses nothing of its own.
func TestFaultsMadeAnew(t *testing.T) {
	t.Parallel()
	m := newMoved(t)
	for round, restart := range []bool{false, true} {
		anew := &ofMesh{m.mesh, fmt.Sprint("anew-", round)}
		later := &ofMesh{m.mesh, fmt.Sprint("later-", round)}
		for _, one := range []*ofMesh{anew, later} {
			one.made()
			one.put(m.global, "before")
			one.arrives(m.zone, "before")
		}
		for _, name := range []string{"again", "gone"} {
			m.apply(m.global, timeout(name, "10s"))
			m.arrives(m.zone, name)
		}
		m.link.Set(cluster.Weather{Cut: true})
		for i := range 20 {
			for _, name := range []string{"again", "gone", "new"} {
				path := "/meshes/default/meshtimeouts/" + name
				if i > 0 || name != "new" {
					m.must(m.global.API.Delete(t.Context(), path))
				}
				m.must(m.global.API.Put(t.Context(), path, timeoutOf(name, fmt.Sprint(longTimeout+i))))
			}
		}
		m.remove(m.global, timeout("gone", "10s"))
		for _, one := range []*ofMesh{anew, later} {
			one.put(m.zone, "zones-own")
			m.must(m.global.API.Delete(t.Context(), one.path("before")))
			m.must(m.global.API.Delete(t.Context(), "/meshes/"+one.name))
		}
		anew.made()
		anew.put(m.global, "after")
		if restart {
			m.global.Kill()
			m.must(m.global.Start(t.Context()))
		}
		m.link.Set(cluster.Weather{})
		mended := time.Now()
		m.eventually("the zone to have what its global says",
			func(ctx context.Context) error { return sameTimeouts(ctx, m.global, m.zone) })
		anew.arrives(m.zone, "after")
		anew.arrives(m.global, "zones-own")
		m.must(later.has(t.Context(), m.zone, "zones-own"))
		made := time.Now()
		later.made()
		later.put(m.global, "after")
		later.arrives(m.zone, "after")
		later.arrives(m.global, "zones-own")
		t.Logf("the global restarted %t: the zone agrees after %s, and %s after the other mesh was made anew", restart,
			made.Sub(mended).Round(time.Millisecond), time.Since(made).Round(time.Millisecond))
		for _, s := range []*cluster.Server{m.global, m.zone} {
			for _, one := range []*ofMesh{anew, later} {
				m.must(one.has(t.Context(), s, "zones-own"))
				if err := one.has(t.Context(), s, "before"); err == nil {
					t.Errorf("%s still has what was in the mesh that was deleted, %s", s.Name(), one.name)
				}
			}
			m.noProblems(s.API.URL())
		}
		m.remove(m.global, timeout("new", "10s"))
		m.leaves(m.zone, "new")
	}
}

// ofMesh is another mesh.
type ofMesh struct {
	*mesh
	name string
}

func (o *ofMesh) path(policy string) string { return "/meshes/" + o.name + "/meshtimeouts/" + policy }

// made creates the mesh on the global.
func (o *ofMesh) made() {
	o.t.Helper()
	o.must(o.global.API.Put(o.t.Context(), "/meshes/"+o.name, map[string]any{"type": "Mesh", "name": o.name}))
}

// put writes a policy of the mesh.
func (o *ofMesh) put(s *cluster.Server, policy string) {
	o.t.Helper()
	doc := timeoutOf(policy, "100000")
	doc["mesh"] = o.name
	o.eventually("the mesh on "+s.Name(),
		func(ctx context.Context) error { return s.API.Put(ctx, o.path(policy), doc) })
}

// arrives waits until a server has a policy of the mesh.
func (o *ofMesh) arrives(s *cluster.Server, policy string) {
	o.t.Helper()
	o.eventually(policy+" of "+o.name+" on "+s.Name(),
		func(ctx context.Context) error { return o.has(ctx, s, policy) })
}

// has returns nil if a server has a policy of the mesh with that display name.
func (o *ofMesh) has(ctx context.Context, s *cluster.Server, policy string) error {
	all, err := byDisplayName(ctx, s, "/meshes/"+o.name+"/meshtimeouts")
	if _, ok := all[policy]; err == nil && !ok {
		err = fmt.Errorf("%s of %s on %s: %w", policy, o.name, s.Name(), errNotYet)
	}
	return err
}
