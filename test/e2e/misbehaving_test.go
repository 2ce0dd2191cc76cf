package e2e

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/peer"
)

// misbehaving is a mesh in which zone-1 behaves, and another peer does not.
type misbehaving struct {
	*mesh
	good  *cluster.Server
	ca    *x509.CertPool
	round int
}

// misbehaviour is how long one peer misbehaves.
const misbehaviour = 4 * time.Second

// TestMisbehavingZones checks that, whatever a peer does, the zone beside it continues in both directions, the global
// keeps its resources, and neither process ends.
func TestMisbehavingZones(t *testing.T) {
	t.Parallel()
	m := &misbehaving{mesh: newAnonymousMesh(t, "zone-1")}
	m.good = m.zones["zone-1"]
	file, err := m.global.CAFile()
	m.must(err)
	pem, err := os.ReadFile(file)
	m.must(err)
	m.ca = x509.NewCertPool()
	m.ca.AppendCertsFromPEM(pem)
	m.goesOn()
	for _, tt := range []struct {
		name      string
		as        string
		misbehave func(*misbehaving, *peer.Streams) error
	}{
		{"garbage", "bad-1", (*misbehaving).garbage},
		{"oversized", "bad-2", (*misbehaving).oversized},
		{"repeated nonces", "bad-3", (*misbehaving).repeatedNonces},
		{"acknowledges unknown nonces", "bad-4", (*misbehaving).unknownNonces},
		{"refuses everything", "bad-5", (*misbehaving).refusesAll},
		{"removes everything", "bad-6", (*misbehaving).removesAll},
		{"never reads", "bad-7", (*misbehaving).neverReads},
		{"another zone's labels", "bad-8", (*misbehaving).anothersLabels},
		{"10,000 types", "bad-9", (*misbehaving).manyTypes},
		{"a bomb in a frame", "bad-10", (*misbehaving).framed},
		{"a second session of the good zone", "zone-1", (*misbehaving).secondSession},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := peer.OpenStreams(t.Context(), peer.ZoneConfig{Name: tt.as, KDS: m.global.Address("kds"), CA: m.ca})
			m.must(err)
			defer s.Close()
			ended := make(chan error, 1)
			go func() { ended <- tt.misbehave(m, s) }()
			select {
			case err := <-ended:
				t.Log("it has done its worst")
				ended <- err
			case <-time.After(misbehaviour):
				t.Log("it hangs in the middle of it") // because the server does not read its side of the streams
			}
			if tt.as != "zone-1" {
				m.goesOn() // with the peer still there
			}
			m.must(s.Close())
			if err := <-ended; err != nil {
				t.Logf("its session has ended (%v)", err)
			}
			m.goesOn()
			m.clear()
		})
	}
}

// clear deletes the large policies that a peer left unread: each look at what goes on would read them, megabytes at a
// time.
func (m *misbehaving) clear() {
	m.t.Helper()
	all, err := timeouts(m.t.Context(), m.global)
	m.must(err)
	for name := range all {
		if strings.HasPrefix(name, "large-") {
			m.must(m.global.API.Delete(m.t.Context(), "/meshes/default/meshtimeouts/"+name))
		}
	}
}

// goesOn writes on both sides, waits until the other side has it, and expects that nothing else has changed.
func (m *misbehaving) goesOn() {
	m.t.Helper()
	m.round++
	value := fmt.Sprint(m.round)
	m.must(m.global.API.Put(m.t.Context(), "/meshes/default/meshtimeouts/from-global", timeoutOf("from-global", value)))
	m.must(m.good.API.Put(m.t.Context(), "/meshes/default/meshtimeouts/from-zone", timeoutOf("from-zone", value)))
	m.must(cluster.Until(m.t.Context(), reconnectPatience, "the good zone to go on", func(ctx context.Context) error {
		for _, server := range []*cluster.Server{m.global, m.good} {
			all, err := timeouts(ctx, server)
			if err != nil {
				return err
			}
			for name, it := range all {
				if strings.HasPrefix(name, "large-") {
					continue
				}
				if name != "from-global" && name != "from-zone" {
					return cluster.Final(fmt.Errorf("%s has %s", server.Name(), name))
				}
				if got := timeoutValue(it); got != value {
					return fmt.Errorf("%s of %s is %s, want %s", name, server.Name(), got, value)
				}
			}
			if len(all) < 2 {
				return fmt.Errorf("%s has only %v", server.Name(), all)
			}
		}
		return errors.Join(m.global.Alive(), m.good.Alive())
	}))
}

func (m *misbehaving) garbage(s *peer.Streams) error {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		raw := make([]byte, rng.IntN(300))
		for i := range raw {
			raw[i] = byte(rng.Uint32())
		}
		response := &discovery.DeltaDiscoveryResponse{TypeUrl: "MeshTimeout",
			Nonce: string(fmt.Appendf(nil, "%d", rng.Uint32())), RemovedResources: []string{"..", "", "x.y.z"}}
		item, err := peer.Resource{Type: "MeshTimeout", Name: "garbage", Mesh: "default"}.Wire("1")
		if err != nil {
			return err
		}
		item.Resource.Value = raw
		response.Resources = append(response.Resources, item)
		if err := s.Respond(response); err != nil {
			return err
		}
	}
	broken := []byte("\xff\xff\xff\xff not a message")
	return errors.Join(s.Up.SendMsg(&broken), s.Down.SendMsg(&broken))
}

func (m *misbehaving) oversized(s *peer.Streams) error {
	huge := bytes.Repeat([]byte{'x'}, 12<<20)
	return s.Up.SendMsg(&huge)
}

func (m *misbehaving) repeatedNonces(s *peer.Streams) error {
	for range 300 {
		if err := s.Respond(&discovery.DeltaDiscoveryResponse{TypeUrl: "MeshTimeout", Nonce: "1"}); err != nil {
			return err
		}
	}
	return nil
}

func (m *misbehaving) unknownNonces(s *peer.Streams) error {
	if err := s.Subscribe("MeshTimeout"); err != nil {
		return err
	}
	for i := range 1000 {
		if err := s.Request(&discovery.DeltaDiscoveryRequest{TypeUrl: "MeshTimeout",
			ResponseNonce: fmt.Sprintf("unknown-%d", i)}); err != nil {
			return err
		}
	}
	return nil
}

// refusesAll answers every response with a refusal, in the wording of existing zones.
func (m *misbehaving) refusesAll(s *peer.Streams) error {
	for _, t := range foreignTypes {
		if err := s.Subscribe(t); err != nil {
			return err
		}
	}
	for range 3 * len(foreignTypes) {
		if err := m.global.API.Put(m.t.Context(), "/meshes/default/meshtimeouts/from-global",
			timeoutOf("from-global", fmt.Sprint(rand.IntN(1000)))); err != nil {
			return err
		}
		r, err := s.Receive()
		if err != nil {
			return err
		}
		err = s.Request(&discovery.DeltaDiscoveryRequest{
			Node: &corev3.Node{Id: "bad-5"}, TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce(),
			ResourceNamesSubscribe: []string{"*"},
			ErrorDetail:            &rpcstatus.Status{Message: "I like none of them"},
		})
		if err != nil {
			return err
		}
		if r.GetTypeUrl() == "MeshTimeout" {
			break
		}
	}
	return nil
}

// removesAll removes everything that the global has.
func (m *misbehaving) removesAll(s *peer.Streams) error {
	for _, list := range []struct{ t, path string }{{"MeshTimeout", "meshtimeouts"}, {"MeshTrust", "meshtrusts"}} {
		items, err := m.global.API.List(m.t.Context(), "/meshes/default/"+list.path)
		if err != nil {
			return err
		}
		var names []string
		for _, it := range items {
			names = append(names, it.Name+".default")
		}
		if len(names) == 0 {
			return fmt.Errorf("the global has no %s", list.t)
		}
		for nonce := range 3 { // the first is the complete list of the zone: empty
			if err := s.Respond(&discovery.DeltaDiscoveryResponse{TypeUrl: list.t, Nonce: fmt.Sprint(nonce),
				RemovedResources: names}); err != nil {
				return err
			}
		}
	}
	return s.Respond(&discovery.DeltaDiscoveryResponse{TypeUrl: "Mesh", Nonce: "1",
		RemovedResources: []string{"default.", "default"}})
}

// neverReads requests everything and leaves megabytes unread.
func (m *misbehaving) neverReads(s *peer.Streams) error {
	if err := s.Subscribe("MeshTimeout"); err != nil {
		return err
	}
	for i := range 100 {
		doc := timeoutOf(fmt.Sprintf("large-%d", i), "1")
		doc["labels"] = map[string]any{"filling": strings.Repeat("x", 60)}
		to := doc["spec"].(map[string]any)["to"].([]any)
		for range 200 {
			to = append(to, map[string]any{"targetRef": map[string]any{"kind": "MeshService",
				"name": strings.Repeat("n", 60)}, "default": map[string]any{"idleTimeout": "1h"}})
		}
		doc["spec"].(map[string]any)["to"] = to
		if err := m.global.API.Put(m.t.Context(), fmt.Sprintf("/meshes/default/meshtimeouts/large-%d", i), doc); err != nil {
			return err
		}
	}
	return nil
}

// anothersLabels sends resources that are labelled as zone-1's.
func (m *misbehaving) anothersLabels(s *peer.Streams) error {
	items, err := m.global.API.List(m.t.Context(), "/meshes/default/meshtimeouts")
	if err != nil {
		return err
	}
	for _, it := range items {
		item, err := peer.Resource{Type: "MeshTimeout", Name: it.Name, Mesh: "default", Labels: it.Labels,
			Spec: `{"to":[{"targetRef":{"kind":"Mesh"},"default":{"idleTimeout":"666s"}}]}`}.Wire("1")
		if err != nil {
			return err
		}
		if err := s.Respond(&discovery.DeltaDiscoveryResponse{TypeUrl: "MeshTimeout", Nonce: it.Name,
			Resources: []*discovery.Resource{item}}); err != nil {
			return err
		}
	}
	return nil
}

func (m *misbehaving) manyTypes(s *peer.Streams) error {
	for i := range 10_000 {
		if err := s.Subscribe(fmt.Sprintf("Type%d", i)); err != nil {
			return err
		}
		if err := s.Respond(&discovery.DeltaDiscoveryResponse{TypeUrl: fmt.Sprintf("Type%d", i), Nonce: "1"}); err != nil {
			return err
		}
	}
	return nil
}

// secondSession uses a stolen name: it takes the session over, and can change the zone's resources like the zone. The
// zone's return undoes that.
func (m *misbehaving) secondSession(s *peer.Streams) error {
	if err := s.Subscribe("MeshTimeout"); err != nil {
		return err
	}
	_, err := s.Receive()
	if errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
