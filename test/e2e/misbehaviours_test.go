package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/causeway-mesh/causeway/test/peer"
)

func (m *strange) garbage(s *peer.Session) error {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		raw := make([]byte, rng.IntN(300))
		for i := range raw {
			raw[i] = byte(rng.Uint32())
		}
		item, err := m.copyOf("garbage", "1").Wire("1")
		if err != nil {
			return err
		}
		item.Resource.Value = raw
		err = s.Send(&discovery.DeltaDiscoveryResponse{TypeUrl: "MeshRetry", Nonce: fmt.Sprint(i),
			Resources: []*discovery.Resource{item}, RemovedResources: []string{"..", "", "x.y.z"}})
		if err != nil {
			return err
		}
	}
	broken := []byte("\xff\xff\xff\xff not a message")
	return errors.Join(s.Up.SendMsg(&broken), s.Down.SendMsg(&broken))
}

func (m *strange) oversized(s *peer.Session) error {
	huge := bytes.Repeat([]byte{'x'}, 12<<20)
	return s.Down.SendMsg(&huge)
}

// repeatedNonces starts with a complete empty list, whose deletions are held.
func (m *strange) repeatedNonces(s *peer.Session) error {
	for range 300 {
		if err := s.Send(&discovery.DeltaDiscoveryResponse{TypeUrl: "MeshTimeout", Nonce: "1"}); err != nil {
			return err
		}
	}
	return nil
}

func (m *strange) unknownNonces(s *peer.Session) error {
	if err := s.Subscribe("MeshTimeout"); err != nil {
		return err
	}
	for i := range 1000 {
		if err := s.Ask(&discovery.DeltaDiscoveryRequest{TypeUrl: "MeshTimeout",
			ResponseNonce: fmt.Sprintf("unknown-%d", i)}); err != nil {
			return err
		}
	}
	return nil
}

// refusesAll refuses every response, for as long as any arrive.
func (m *strange) refusesAll(s *peer.Session) error {
	for _, t := range foreignTypes {
		if err := s.Subscribe(t); err != nil {
			return err
		}
	}
	for {
		r, err := s.Received()
		if err != nil {
			return err
		}
		err = s.Ask(&discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce(),
			ErrorDetail: &rpcstatus.Status{Message: "I like none of them"}})
		if err != nil {
			return err
		}
	}
}

// forgetsAll sends an empty list of each type, like a global that has lost its store.
func (m *strange) forgetsAll(s *peer.Session) error {
	if err := s.Send(&discovery.DeltaDiscoveryResponse{TypeUrl: "MeshTimeout", Nonce: "nothing"}); err != nil {
		return err
	}
	_, err := s.Answered("nothing")
	return err
}

// removesTheZones removes resources that the global never owned.
func (m *strange) removesTheZones(s *peer.Session) error {
	if err := m.gives(s, "MeshTimeout", m.copyOf(m.copies[0], "1")); err != nil {
		return err // the rest of the list is held
	}
	for i := range 3 {
		nonce := fmt.Sprint(i)
		if err := s.Send(&discovery.DeltaDiscoveryResponse{TypeUrl: "MeshTimeout", Nonce: nonce,
			RemovedResources: []string{"from-zone.default", "from-zone"}}); err != nil {
			return err
		}
		if _, err := s.Answered(nonce); err != nil {
			return err
		}
	}
	return nil
}

// neverReads sends messages that require answers, and reads none.
func (m *strange) neverReads(s *peer.Session) error {
	item, err := m.copyOf(m.copies[0], "7").Wire("7")
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		r := &discovery.DeltaDiscoveryResponse{TypeUrl: "MeshTimeout",
			Nonce: fmt.Sprintf("%d-%s", i, strings.Repeat("n", 4000))}
		if i == 0 {
			for _, name := range m.copies[1:] {
				other, err := m.copyOf(name, "7").Wire("7")
				if err != nil {
					return err
				}
				r.Resources = append(r.Resources, other)
			}
		}
		r.Resources = append(r.Resources, item)
		if err := s.Send(r); err != nil {
			return err
		}
	}
}

// anothersLabels sends the zone a resource that is labelled as the zone's own.
func (m *strange) anothersLabels(s *peer.Session) error {
	own := m.copyOf("from-zone", "666")
	own.Labels = map[string]string{"kuma.io/origin": "zone", "kuma.io/zone": "zone-1", "kuma.io/display-name": "from-zone"}
	for i := range 3 {
		item, err := own.Wire(fmt.Sprint(i))
		if err != nil {
			return err
		}
		nonce := fmt.Sprint(i)
		if err := s.Send(&discovery.DeltaDiscoveryResponse{TypeUrl: "MeshTimeout", Nonce: nonce,
			Resources: []*discovery.Resource{item}}); err != nil {
			return err
		}
		answer, err := s.Answered(nonce)
		if err != nil {
			return err
		}
		if !strings.Contains(answer.GetErrorDetail().GetMessage(), "from-zone") {
			m.t.Errorf("what the zone wrote itself was taken from the global: %v", answer)
		}
	}
	return nil
}

func (m *strange) manyTypes(s *peer.Session) error {
	for i := range 10_000 {
		t := fmt.Sprintf("Type%d", i)
		if err := errors.Join(s.Subscribe(t), s.Send(&discovery.DeltaDiscoveryResponse{TypeUrl: t, Nonce: "1"})); err != nil {
			return err
		}
	}
	return nil
}

// hangsUp ends the session. The zone must not reconnect faster and faster.
func (m *strange) hangsUp(s *peer.Session) error {
	s.End()
	ctx, stop := context.WithTimeout(m.t.Context(), misbehaviour/2)
	defer stop()
	for sessions := 1; ; sessions++ {
		select {
		case s := <-m.global.Sessions():
			s.End()
		case <-ctx.Done():
			if sessions > 20 {
				m.t.Errorf("%d sessions in %s", sessions, misbehaviour/2)
			}
			return nil
		}
	}
}
