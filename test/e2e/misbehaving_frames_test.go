package e2e

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"strings"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/peer"
)

// frameField is the field of a response that has a compressed frame: docs/decisions/0072.
const frameField = 2000

// frameOf deflates a content with a dictionary, says that it has a size, and leaves out the last bytes.
func frameOf(content []byte, dictionary string, says uint64, cut int) (*discovery.DeltaDiscoveryResponse, error) {
	var deflated bytes.Buffer
	w, err := flate.NewWriterDict(&deflated, flate.BestCompression, []byte(dictionary))
	if err != nil {
		return nil, err
	}
	_, err = w.Write(content)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	made := append(protowire.AppendVarint(nil, says), deflated.Bytes()[:deflated.Len()-cut]...)
	r := &discovery.DeltaDiscoveryResponse{Nonce: "framed"}
	r.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, frameField, protowire.BytesType), made))
	return r, nil
}

// insideOf returns a list of one resource as it stands in a frame.
func (m *strange) insideOf(r peer.Resource) ([]byte, error) {
	item, err := r.Wire("")
	if err != nil {
		return nil, err
	}
	return proto.Marshal(&discovery.DeltaDiscoveryResponse{TypeUrl: r.Type, Resources: []*discovery.Resource{item}})
}

// refusesFrame sends a frame, which ends the session for a reason that the zone tells.
func (m *strange) refusesFrame(s *peer.Session, content []byte, dictionary string, says uint64, cut int) error {
	const told = "the peer's compressed frame is refused"
	before := strings.Count(m.zone.Log(), told)
	r, err := frameOf(content, dictionary, says, cut)
	if err != nil {
		return err
	}
	if err := s.Send(r); err != nil {
		return err
	}
	answer, ended := s.Answered("framed")
	if ended == nil {
		m.t.Errorf("the zone takes the frame: %v", answer)
	}
	err = cluster.Until(m.t.Context(), reconnectPatience, "the zone to say why its session ended",
		func(context.Context) error {
			if strings.Count(m.zone.Log(), told) == before {
				return errors.New("it does not say: " + told)
			}
			return nil
		})
	if err != nil {
		m.t.Error(err)
	}
	return ended
}

func (m *strange) bomb(s *peer.Session) error {
	return m.refusesFrame(s, make([]byte, 64<<20), "", 64<<20, 0)
}

// hiddenBomb holds more than it says.
func (m *strange) hiddenBomb(s *peer.Session) error {
	return m.refusesFrame(s, make([]byte, 64<<20), "", 1<<10, 0)
}

func (m *strange) anotherDictionary(s *peer.Session) error {
	content, err := m.insideOf(m.copyOf(m.copies[0], "666"))
	if err != nil {
		return err
	}
	return m.refusesFrame(s, content, string(content), uint64(len(content)), 0)
}

func (m *strange) frameCutShort(s *peer.Session) error {
	content, err := m.insideOf(m.copyOf(m.copies[0], "666"))
	if err != nil {
		return err
	}
	return m.refusesFrame(s, content, "", uint64(len(content)), 9)
}

// framedRole is a sound frame of a type that no zone asks for, and that would make everybody admin.
func (m *strange) framedRole(s *peer.Session) error {
	content, err := m.insideOf(peer.Resource{Type: "AccessRoleBinding", Name: "everybody",
		Spec: `{"subjects":[{"type":"Group","name":"mesh-system:authenticated"}],"roles":["admin"]}`})
	if err != nil {
		return err
	}
	r, err := frameOf(content, "", uint64(len(content)), 0)
	if err != nil {
		return err
	}
	if err := s.Send(r); err != nil {
		return err
	}
	answer, err := s.Answered("framed")
	if err != nil {
		return err
	}
	if !strings.Contains(answer.GetErrorDetail().GetMessage(), "does not travel") {
		m.t.Errorf("a role of the global is answered with %v", answer)
	}
	var list struct{ Total int }
	m.must(m.zone.API.Get(m.t.Context(), "/accessrolebindings", &list))
	if list.Total > 0 {
		m.t.Errorf("the zone has %d bindings of its global", list.Total)
	}
	return nil
}

// framed sends frames to a global, which takes none: the first ends the session.
func (m *misbehaving) framed(s *peer.Streams) error {
	r, err := frameOf(make([]byte, 64<<20), "", 64<<20, 0)
	if err != nil {
		return err
	}
	for {
		if err := s.Respond(r); err != nil {
			return err
		}
	}
}
