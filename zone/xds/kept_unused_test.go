package xds_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// TestKeptIdentitiesThatAreNotUsed: a proxy whose identity cannot be what it was gets another one, and nothing stands
// in its way.
func TestKeptIdentitiesThatAreNotUsed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		// meanwhile happens while the zone is away.
		meanwhile func(*zoneServer)
		kept      string // outcome; "" where there is nothing
		says      string
	}{
		{"the authority was rotated", func(z *zoneServer) {
			authorities := identity.NewAuthorities(identity.Config{Keeper: z.keeper, Zone: home.Zone})
			next, err := authorities.Prepare(context.Background(), "default")
			must(z.t, err)
			must(z.t, authorities.Promote(context.Background(), "default", next))
		}, "other-authority", "another authority signed the stored identity"},
		{"another workload", func(z *zoneServer) {
			z.put(resources.TypeDataplane, "backend", `{"networking": {"address": "127.0.0.1"}}`,
				map[string]string{resources.LabelWorkload: "shop"})
		}, "other-identity", "would be for spiffe://default.zone-1.mesh.local/workload/shop"},
		{"the Dataplane was deleted and made again", func(z *zoneServer) {
			z.delete(resources.TypeDataplane, "backend")
			z.start()
			z.stop()
			z.dataplane("backend", httpInbound)
		}, "", ""},
		{"the file is damaged", func(z *zoneServer) {
			raw, err := os.ReadFile(z.checkpoint)
			must(z.t, err)
			raw[len(raw)-100] ^= 1
			must(z.t, os.WriteFile(z.checkpoint, raw, 0o600))
		}, "", "cannot be read"},
		{"the file is gone", func(z *zoneServer) { must(z.t, os.Remove(z.checkpoint)) }, "", ""},
		{"it is sealed with another key", func(z *zoneServer) {
			var err error
			z.box, err = secrets.OpenBox(secrets.Config{Dir: z.t.TempDir(), Log: slog.New(slog.DiscardHandler)})
			must(z.t, err)
		}, "", "sealed with another key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			z := newZoneServer(t)
			z.trust()
			z.dataplane("backend", httpInbound)
			first := z.delta()
			first.subscribe(nodeOf("backend", ""), sds, ownIdentity)
			first.next(sds)
			first.close()
			z.stop()
			c.meanwhile(z)
			var says said
			z.log = slog.New(slog.NewTextHandler(&says, nil))
			z.start()
			next := z.delta()
			next.send(&discovery.DeltaDiscoveryRequest{
				Node: nodeOf("backend", ""), TypeUrl: sds, ResourceNamesSubscribe: []string{ownIdentity},
				InitialResourceVersions: first.versions[sds],
			})
			if r := next.next(sds); !slices.Equal(names(r), []string{ownIdentity}) {
				t.Errorf("got %v", names(r))
			}
			if got := z.counts("causeway_identity_issued_total"); got[""] != 1 {
				t.Errorf("issued %v", got)
			}
			if got := z.counts("causeway_identity_kept_total"); got[c.kept] != 1 && c.kept != "" || c.kept == "" &&
				len(got) > 0 {
				t.Errorf("of those that were kept: %v", got)
			}
			if got := says.text(); !strings.Contains(got, c.says) {
				t.Errorf("the log says %q, not %q", got, c.says)
			}
			// The new one is kept.
			next.close()
			z.stop()
			z.start()
			next = z.delta()
			next.send(&discovery.DeltaDiscoveryRequest{
				Node: nodeOf("backend", ""), TypeUrl: sds, ResourceNamesSubscribe: []string{ownIdentity},
				InitialResourceVersions: next.versions[sds],
			})
			next.next(sds)
			if got := z.counts("causeway_identity_kept_total"); got["used"] != 1 {
				t.Errorf("then of those that were kept: %v", got)
			}
		})
	}
}

// TestDeletedWhileItRuns: nothing is kept of a Dataplane that was deleted, be its proxy connected or not, and be it
// noticed change by change or by a full comparison.
func TestDeletedWhileItRuns(t *testing.T) {
	t.Parallel()
	for _, connected := range []bool{true, false} {
		z := newZoneServer(t)
		z.dataplane("backend", httpInbound)
		z.dataplane("frontend", httpInbound)
		c := z.delta()
		c.subscribe(nodeOf("backend", ""), sds, ownIdentity)
		c.next(sds)
		if !connected {
			c.close()
		}
		z.delete(resources.TypeDataplane, "backend")
		other := z.delta()
		other.subscribe(nodeOf("frontend", ""), cds, "*")
		other.next(cds)
		z.delete(resources.TypeDataplane, "frontend") // noticed after the other
		other.next(cds)
		z.dataplane("backend", httpInbound)
		again := z.delta()
		again.subscribe(nodeOf("backend", ""), sds, ownIdentity)
		again.next(sds)
		if issued, kept := z.counts("causeway_identity_issued_total"),
			z.counts("causeway_identity_kept_total"); issued[""] != 2 || len(kept) > 0 {
			t.Errorf("connected %t: issued %v, kept %v", connected, issued, kept)
		}
	}
}

// said is a log that may be read while it is written.
type said struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}
