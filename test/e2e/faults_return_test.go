package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/peer"
)

// returning is a global with zones that reconnect after every disconnect, each with its own certificate.
type returning struct {
	*mesh
	ca       *x509.CertPool
	kds      string
	size     int
	policies int
	zones    []returningZone
	sessions atomic.Int64
	crowd    sync.WaitGroup
}

type returningZone struct {
	name        string
	certificate tls.Certificate
	now         atomic.Pointer[peer.Zone]
}

// TestFaultsAllZonesComeBack ends a global during the first sync of its zones, and kills it later, so that all of its zones reconnect at once, over mutual TLS, from one
// address. All are online and in sync in time, with what was written meanwhile. After they leave, nothing of them
// remains.
func TestFaultsAllZonesComeBack(t *testing.T) {
	r := &returning{mesh: newCluster(t), size: 30, policies: 100}
	if *faultsLong {
		r.size, r.policies = 1000, 300
	}
	r.start()
	idle, empty := r.goroutines(), heapOf(r.mesh, r.global)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	begun := time.Now()
	for i := range r.zones {
		r.crowd.Go(func() { r.zones[i].stay(ctx, r) })
	}
	r.endsDuringFirstSync()
	r.inSync(r.policies)
	first := time.Since(begun)
	before := r.sessions.Load()
	r.global.Kill()
	r.must(r.global.Start(t.Context()))
	begun = time.Now()
	r.must(r.global.API.Put(t.Context(), "/meshes/default/meshtimeouts/late", timeoutOf("late", "1")))
	r.inSync(r.policies + 1)
	r.allOnline()
	t.Logf("%d zones, %d policies: in sync %s after they began, and %s after the global was up again, in %d sessions",
		r.size, r.policies,
		first.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond), r.sessions.Load()-before)
	with := heapOf(r.mesh, r.global)
	leave()
	r.crowd.Wait()
	r.eventually("the goroutines of the zones to be gone", func(context.Context) error {
		if now := r.goroutines(); now > idle+20 {
			return fmt.Errorf("%v goroutines, without zones it had %v", now, idle)
		}
		return nil
	})
	after := heapOf(r.mesh, r.global)
	t.Logf("the heap was %.1f MiB before the zones came, %.1f with them, %.1f when they had gone", empty, with, after)
	if perZone := (after - empty) * 1024 / float64(r.size); perZone > leftOfAZone && after-empty > 10 {
		t.Errorf("%.0f KiB are left of each zone, at most %d", perZone, leftOfAZone)
	}
	if *faultsLong {
		r.deleted(empty)
	}
}

// endsDuringFirstSync ends the global while its zones take their first state, and starts it again.
func (r *returning) endsDuringFirstSync() {
	r.t.Helper()
	r.eventually("a zone to begin", func(context.Context) error {
		for i := range r.zones {
			if r.zones[i].now.Load() != nil {
				return nil
			}
		}
		return errNotYet
	})
	ctx, cancel := context.WithTimeout(r.t.Context(), endsWithin)
	defer cancel()
	begun := time.Now()
	if err := r.global.Stop(ctx); err != nil {
		r.t.Errorf("the global, told to end during the first sync of %d zones: %v", r.size, err)
		r.global.Kill()
	}
	took, lacking := time.Since(begun), 0
	for i := range r.zones {
		if s := r.zones[i].now.Load(); s == nil {
			lacking++
		} else if got, _ := s.Copies("MeshTimeout"); len(got) < r.policies {
			lacking++
		}
	}
	r.t.Logf("the global ended %s after SIGTERM; %d of %d zones had not all by then", took.Round(time.Millisecond), lacking, r.size)
	if lacking == 0 && *faultsLong {
		r.t.Error("all zones had everything: that shows nothing")
	}
	r.must(r.global.Start(r.t.Context()))
}

// deleted deletes the zones. Only their changelog entries may remain.
func (r *returning) deleted(empty float64) {
	r.t.Helper()
	for i := range r.zones {
		r.must(r.global.API.Delete(r.t.Context(), "/zones/"+r.zones[i].name))
	}
	r.eventually("what is known of deleted zones to be gone", func(context.Context) error {
		now := heapOf(r.mesh, r.global)
		r.t.Logf("with the zones deleted the heap is %.1f MiB", now)
		if (now-empty)*1024 > float64(leftOfADeletedZone*r.size) {
			return fmt.Errorf("the heap is %.1f MiB, before the zones came it was %.1f", now, empty)
		}
		return nil
	})
}

// leftOfADeletedZone is what may remain of a deleted zone, in KiB: its last changes, in the changelog.
const leftOfADeletedZone = 12

// leftOfAZone is what may remain of an offline zone, in KiB: its insight, its certificate, its resources and refusals.
// The measured value was 18.
const leftOfAZone = 40

func (r *returning) goroutines() float64 {
	r.t.Helper()
	n, err := r.global.Metric(r.t.Context(), "go_goroutines")
	r.must(err)
	return n
}

// start writes the policies and joins the zones.
func (r *returning) start() {
	r.t.Helper()
	var err error
	r.global, err = r.StartGlobal(r.t.Context(), cluster.GlobalConfig{})
	r.must(err)
	r.kds = r.global.Address("kds")
	file, err := r.global.CAFile()
	r.must(err)
	raw, err := os.ReadFile(file)
	r.must(err)
	r.ca = x509.NewCertPool()
	r.ca.AppendCertsFromPEM(raw)
	for begin := 0; begin < r.policies; begin += 500 {
		var documents bytes.Buffer
		for i := begin; i < min(r.policies, begin+500); i++ {
			documents.WriteString("---\n" + timeout(fmt.Sprintf("t%d", i), "10s"))
		}
		_, err = r.CTL(r.t.Context(), r.global, &documents, "apply", "-f", "-")
		r.must(err)
	}
	r.zones = make([]returningZone, r.size)
	var g errgroup.Group
	g.SetLimit(4)
	for i := range r.zones {
		z := &r.zones[i]
		z.name = fmt.Sprintf("zone-%d", i)
		g.Go(func() error { return z.join(r.t.Context(), r) })
	}
	r.must(g.Wait())
}

// join gets a certificate with a join string.
func (z *returningZone) join(ctx context.Context, r *returning) error {
	text, err := r.JoinString(ctx, r.global, z.name)
	if err != nil {
		return err
	}
	z.certificate, err = peer.Join(ctx, text, r.ca)
	return err
}

// stay keeps a zone connected until ctx ends. It reconnects 100 ms after a disconnect.
func (z *returningZone) stay(ctx context.Context, r *returning) {
	for ctx.Err() == nil {
		r.sessions.Add(1)
		s, err := peer.Connect(ctx, peer.ZoneConfig{Name: z.name, KDS: r.kds, CA: r.ca, Certificate: &z.certificate,
			Types: []string{"Mesh", "MeshTimeout"}})
		if err == nil {
			z.now.Store(s)
			for s.Err() == nil && ctx.Err() == nil {
				during(ctx, 20*time.Millisecond)
			}
			_ = s.Close()
		}
		during(ctx, 100*time.Millisecond)
	}
}

// inSync waits until every zone has the given number of policies.
func (r *returning) inSync(policies int) {
	r.t.Helper()
	r.must(cluster.Until(r.t.Context(), 3*patience, "all zones to be in sync", func(context.Context) error {
		done := 0
		var last error
		for i := range r.zones {
			s := r.zones[i].now.Load()
			if s == nil {
				last = errors.New("no session yet")
				continue
			}
			if got, _ := s.Copies("MeshTimeout"); len(got) == policies && s.Err() == nil {
				done++
			} else {
				last = fmt.Errorf("%s has %d, its session ended with %w", r.zones[i].name, len(got), s.Err())
			}
		}
		if done < r.size {
			return fmt.Errorf("%d of %d: %w", done, r.size, last)
		}
		return nil
	}))
}

// allOnline waits until the global reports all zones as online.
func (r *returning) allOnline() {
	r.t.Helper()
	r.eventually("all zones to be online", func(ctx context.Context) error {
		raw, err := r.CTL(ctx, r.global, nil, "get", "zones")
		if online := strings.Count(string(raw), " online "); err == nil && online != r.size {
			err = fmt.Errorf("%d are", online)
		}
		return err
	})
}
