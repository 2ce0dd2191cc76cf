package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/kds/frame"
	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/peer"
)

// TestFaultsFramesThatAreCut cuts the way of a zone to its global in the middle of the frames of its first state, each time
// at another byte, while policies change. In the end the zone has every policy, as the global has it, and no frame was
// refused: one that does not arrive whole is none.
func TestFaultsFramesThatAreCut(t *testing.T) {
	t.Parallel()
	policies, cuts := 1_000, 4
	if *faultsLong {
		policies, cuts = 2_000, 20
	}
	m := newMesh(t)
	link, err := cluster.NewLink(t.Context(), m.global.Address("kds"))
	m.must(err)
	t.Cleanup(func() { _ = link.Close() })
	m.writes(policies, "10s")
	zone, err := m.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: m.global, Link: link})
	m.must(err)
	m.fillsUp(zone, policies)
	_, whole := link.Passed()
	if most := int64(policies) * 200; whole > most { // a policy by itself is 700 bytes
		t.Fatalf("%d bytes for %d policies: there were no frames", whole, policies)
	}
	random := rand.New(rand.NewPCG(*crashSeed, 20))
	m.must(zone.Stop(t.Context()))
	inTheMiddle := 0
	for i := range cuts {
		link.Set(cluster.Weather{Cut: true})
		zone.Kill()
		value := fmt.Sprintf("%ds", 11+i)
		m.writes(policies, value) // so that the zone lacks all of them
		m.must(zone.Start(t.Context()))
		_, before := link.Passed()
		link.Set(cluster.Weather{BytesPerSecond: 16 << 10})
		at := before + 8<<10 + random.Int64N(whole/2) // after the handshake
		m.eventually("bytes to pass", func(context.Context) error {
			if _, down := link.Passed(); down < at {
				return errNotYet
			}
			return nil
		})
		link.Set(cluster.Weather{Cut: true})
		items, err := timeouts(t.Context(), zone)
		m.must(err)
		has := 0
		for _, it := range items {
			if strings.Contains(string(it.Spec), value) {
				has++
			}
		}
		if has < policies {
			inTheMiddle++
		}
		m.must(zone.Alive())
		m.must(m.global.API.Put(t.Context(), fmt.Sprintf("/meshes/default/meshtimeouts/late-%d", i), timeoutOf(fmt.Sprintf("late-%d", i), "1")))
	}
	begun := time.Now()
	link.Set(cluster.Weather{})
	m.fillsUp(zone, policies+cuts)
	m.eventually("the same policies on both sides", func(ctx context.Context) error { return sameTimeouts(ctx, m.global, zone) })
	t.Logf("%d policies in %d bytes, %d cuts, %d of them before the zone had all: it had them %s after the last", policies, whole, cuts,
		inTheMiddle, time.Since(begun).Round(time.Millisecond))
	if inTheMiddle == 0 {
		t.Error("no cut came in time to show anything")
	}
	metrics, err := zone.Diagnostics(t.Context(), "/metrics")
	m.must(err)
	if strings.Contains(string(metrics), "causeway_kds_refused_frames_total{") {
		t.Error("frames were refused")
	}
	m.noProblems(m.global.API.URL())
	m.noProblems(zone.API.URL())
}

// TestFaultsOneBadResourceInAFrame sends a zone frames in which one resource of 40 is bad, each in another way. The zone
// refuses that one by name, takes the others, and what comes after; its session goes on.
func TestFaultsOneBadResourceInAFrame(t *testing.T) {
	t.Parallel()
	m := newStrange(t, 40)
	s := m.session()
	defer s.End()
	m.must(m.gives(s, "Mesh", peer.Resource{Type: "Mesh", Name: "default", SpecType: "type.googleapis.com/kuma.mesh.v1alpha1.Mesh"}))
	for name, spoil := range map[string]func(bad *peer.Resource, item *discovery.Resource){
		"bytes of nothing":  func(_ *peer.Resource, item *discovery.Resource) { item.Resource.Value = []byte("\xff\xfe nothing") },
		"no spec":           func(_ *peer.Resource, item *discovery.Resource) { item.Resource = nil },
		"a spec of no form": func(bad *peer.Resource, _ *discovery.Resource) { bad.Spec = `{"to":` },
		"a spec that is wrong": func(bad *peer.Resource, _ *discovery.Resource) {
			bad.Spec = `{"to":[{"targetRef":{"kind":"Nothing"}}]}`
		},
		"the zone's own": func(bad *peer.Resource, _ *discovery.Resource) {
			bad.Name = "from-zone"
			bad.Labels = map[string]string{"kuma.io/origin": "zone", "kuma.io/zone": "zone-1", "kuma.io/display-name": "from-zone"}
		},
	} {
		m.round++
		value := fmt.Sprint(m.round)
		r := &discovery.DeltaDiscoveryResponse{TypeUrl: "MeshTimeout"}
		for _, name := range m.copies {
			item, err := m.copyOf(name, value).Wire("")
			m.must(err)
			r.Resources = append(r.Resources, item)
		}
		bad := m.copyOf("bad", value)
		spoil(&bad, &discovery.Resource{Resource: &anypb.Any{}})
		item, err := bad.Wire("")
		m.must(err)
		spoil(&peer.Resource{}, item)
		r.Resources = append(r.Resources[:20:20], append([]*discovery.Resource{item}, r.Resources[20:]...)...)
		m.must(s.Send(framedOf(t, r, name)))
		answer, err := s.Answered(name)
		m.must(err)
		if said := answer.GetErrorDetail().GetMessage(); !strings.Contains(said, item.GetName()) && !strings.Contains(said, bad.Name) {
			t.Errorf("%s: the zone answers %q, which does not name %s", name, said, item.GetName())
		}
		items, err := timeouts(t.Context(), m.zone)
		m.must(err)
		for _, one := range m.copies {
			if got := timeoutValue(items[one]); got != value {
				t.Errorf("%s: %s is %s, want %s", name, one, got, value)
			}
		}
		m.must(m.gives(s, "MeshTimeout", m.copyOf(m.copies[0], value))) // a change after it
		m.stands(name)
	}
}

// framedOf returns a response whose type and resources are in a frame, without versions, as a global sends it.
func framedOf(t *testing.T, r *discovery.DeltaDiscoveryResponse, nonce string) *discovery.DeltaDiscoveryResponse {
	t.Helper()
	content, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	const frameField = 2000
	out := &discovery.DeltaDiscoveryResponse{Nonce: nonce}
	out.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, frameField, protowire.BytesType), frame.Make(content)))
	return out
}
