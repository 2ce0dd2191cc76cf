package kds

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/frame"
	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/messages"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// sentTo returns what a sender makes of a message with these resources for a zone with these features, as it goes out.
func sentTo(t *testing.T, features exchange.Features, list ...*resources.Resource) *discovery.DeltaDiscoveryResponse {
	t.Helper()
	e := newEncoder(exchange.NewMapping(), nil)
	audience := exchange.Audience{Direction: exchange.GlobalToZone, Zone: "zone-1", Features: features}
	p, made := &packer{senderConfig: &senderConfig{encoder: e}, audience: audience}, &chunk{payload: &payload{}}
	for _, r := range list {
		made.resources = append(made.resources, e.encode(r, &audience))
		made.size += made.resources[len(made.resources)-1].size
	}
	p.compress(list[0].Type, made)
	out := &response{version: "7", typeURL: string(list[0].Type), nonce: "n", identifier: "global", payload: made.payload,
		compressed: made.compressed}
	buffers, err := newCodec().Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	defer buffers.Free()
	var m discovery.DeltaDiscoveryResponse
	if err := proto.Unmarshal(buffers.Materialize(), &m); err != nil {
		t.Fatal(err)
	}
	if size := buffers.Len(); made.compressed != nil && size > made.size+envelopeRoom {
		t.Errorf("a message of %d bytes, with resources of %d", size, made.size)
	}
	return &m
}

// hasFrame reports whether a response has a frame that was not opened.
func hasFrame(m *discovery.DeltaDiscoveryResponse) bool {
	return len(m.ProtoReflect().GetUnknown()) > 0
}

// TestFramesHoldWhatIsSentOtherwise checks that a zone that takes frames ends with what any other gets: names, bytes and
// versions.
func TestFramesHoldWhatIsSentOtherwise(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 40} {
		var list []*resources.Resource
		for i := range n {
			list = append(list, fiveMatchers(t, i, i))
		}
		framed, plain := sentTo(t, exchange.FeatureFrames, list...), sentTo(t, 0, list...)
		if !hasFrame(framed) || hasFrame(plain) {
			t.Fatalf("%d policies: the frames are wrong", n)
		}
		if err := openFrame(framed, true); err != nil {
			t.Fatal(err)
		}
		plain.ControlPlane = nil // who takes frames knows whom it dialled
		if !proto.Equal(framed, plain) {
			t.Errorf("%d policies: the frame holds %v, want %v", n, framed, plain)
		}
	}
}

// TestSecretsStayOutOfFrames checks that nothing is compressed beside a secret, whose length would tell of it.
func TestSecretsStayOutOfFrames(t *testing.T) {
	t.Parallel()
	external := func(name, tls string) *resources.Resource {
		return written(t, globalHome, resources.Key{Type: resources.TypeMeshExternalService, Mesh: "default", Name: name},
			`{"match":{"port":443,"protocol":"tcp"},"endpoints":[{"address":"example.org","port":443}],"tls":{"enabled":true`+tls+`}}`)
	}
	open, secret := external("open", ""), external("secret", `,"verification":{"clientKey":{"inlineString":"S3cret"}}`)
	if !hasFrame(sentTo(t, exchange.FeatureFrames, open)) {
		t.Error("what has no secret is not compressed")
	}
	if m := sentTo(t, exchange.FeatureFrames, open, secret); hasFrame(m) || len(m.GetResources()) != 2 {
		t.Errorf("a secret is in a frame: %v", m)
	}
}

// TestFramesAreMadeOnce checks that a list and a change are compressed once for all zones that take frames, and that
// the others get today's bytes.
func TestFramesAreMadeOnce(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	var all []*resources.Resource
	for i := range 50 {
		all = append(all, fiveMatchers(t, i, i))
	}
	put(t, g.store, all...)
	frames := map[string]int{}
	for i := range 6 {
		features := exchange.OwnFeatures()
		if i%3 == 2 {
			features &^= exchange.FeatureFrames
		}
		p := dialPeer(t, fmt.Sprintf("zone-%d", i), g.address, features)
		p.openDown(all[0].Type)
		m, err := p.down.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if hasFrame(m) == (i%3 == 2) {
			t.Errorf("zone %d: a frame: %t", i, hasFrame(m))
		}
		frames[string(m.ProtoReflect().GetUnknown())]++
	}
	if len(frames) != 2 {
		t.Errorf("%d forms of one list", len(frames))
	}
	if made := g.encoder.frames.Load(); made != 1 {
		t.Errorf("the list was compressed %d times", made)
	}
}

// framedBy returns a response with a field of frames.
func framedBy(fields ...[]byte) *discovery.DeltaDiscoveryResponse {
	m := &discovery.DeltaDiscoveryResponse{Nonce: "n", SystemVersionInfo: "1"}
	var unknown []byte
	for _, f := range fields {
		unknown = protowire.AppendBytes(protowire.AppendTag(unknown, frameField, protowire.BytesType), f)
	}
	m.ProtoReflect().SetUnknown(unknown)
	return m
}

// TestFramesThatAreRefused checks each fault of a message with a frame: it is refused by its name, and opens nothing.
func TestFramesThatAreRefused(t *testing.T) {
	t.Parallel()
	sound := frame.Make([]byte("\x22\x04Mesh"))
	beside := framedBy(sound)
	beside.Resources = []*discovery.Resource{{Name: "a.b"}}
	notBytes := &discovery.DeltaDiscoveryResponse{}
	notBytes.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, frameField, protowire.VarintType), 1))
	for name, c := range map[string]struct {
		m     *discovery.DeltaDiscoveryResponse
		takes bool
		want  error
	}{
		"sound":                     {framedBy(sound), true, nil},
		"to one that takes none":    {framedBy(sound), false, ErrFrame},
		"no frame":                  {framedBy([]byte{1, 2, 3}), true, frame.ErrInvalid},
		"two":                       {framedBy(sound, sound), true, ErrFrame},
		"resources beside it":       {beside, true, ErrFrame},
		"a number":                  {notBytes, true, ErrFrame},
		"no message in it":          {framedBy(frame.Make([]byte{0xff})), true, ErrFrame},
		"a frame in it":             {framedBy(frame.Make(framedBy(sound).ProtoReflect().GetUnknown())), true, ErrFrame},
		"a nonce in it":             {framedBy(frame.Make([]byte("\x2a\x01x"))), true, ErrFrame},
		"more than a message holds": {framedBy(frame.Make(make([]byte, MaxMessageSize+1))), true, frame.ErrLarge},
		"too many in it": {framedBy(frame.Make(bytes.Repeat([]byte("\x12\x00"), MaxMessageSize/2))), true,
			messages.ErrDense},
	} {
		err := openFrame(c.m, c.takes)
		switch {
		case c.want == nil && (err != nil || c.m.GetTypeUrl() != "Mesh" || hasFrame(c.m)):
			t.Errorf("%s: %v, %v", name, c.m, err)
		case c.want != nil && (!errors.Is(err, c.want) || !errors.Is(err, ErrFrame)):
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestBombEndsTheSession sends a zone a frame that holds too much: the session ends, the event says why, and the zone
// takes what a sound global sends in the next one.
func TestBombEndsTheSession(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	evil := &evilGlobal{t: t, store: s, features: exchange.OwnFeatures(), interval: time.Minute}
	l, target := listenSomewhere(t)
	stop := serveOn(t, l, func(r grpc.ServiceRegistrar) {
		r.RegisterService(&kdspb.KDSSyncService_ServiceDesc, evil)
		r.RegisterService(&kdspb.GlobalKDSService_ServiceDesc, evil)
	})
	z := startZone(t, "zone-1", target, s)
	bomb := framedBy(frame.Make(make([]byte, MaxMessageSize+1)))
	eventually(t, "the bomb to be refused", func() bool {
		if down, _ := evil.streams(); down != nil {
			_ = down.stream.Send(bomb) // the session may just have ended
		}
		return z.events.count(FrameRefused, "") > 0
	})
	eventually(t, "the session's end", func() bool {
		for _, err := range z.events.ends() {
			if errors.Is(err, ErrFrame) && errors.Is(err, frame.ErrLarge) {
				return true
			}
		}
		return false
	})
	sound := sentTo(t, exchange.FeatureFrames, fiveMatchers(t, 1, 1))
	eventually(t, "the zone to take a sound frame", func() bool {
		if down, _ := evil.streams(); down != nil {
			_ = down.stream.Send(sound)
		}
		return find(s, resources.TypeMeshTrafficPermission, "policy-1") != nil
	})
	z.stop()
	stop()
}

// TestFramesGoDownOnly sends one up: the global, which never asked for any, refuses the message and says so.
func TestFramesGoDownOnly(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	p := dialPeer(t, "zone-1", g.address, exchange.OwnFeatures())
	p.openUp()
	if err := p.up.Send(framedBy(frame.Make([]byte("\x22\x04Mesh")))); err != nil {
		t.Fatal(err)
	}
	if _, err := p.up.Recv(); grpcstatus.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "frame") {
		t.Errorf("the answer is %v", err)
	}
	if n := g.events.count(FrameRefused, ""); n != 1 {
		t.Errorf("%d frames were refused", n)
	}
}

// FuzzFrame opens what a peer could send in place of a message, and in a frame of one: what is taken has a version for
// each resource and no frame any more, and what is refused is refused by name.
func FuzzFrame(f *testing.F) {
	key, spec := permission("p")
	wire := wireOf(f, "zone-1", written(f, zoneHome("zone-1"), key, spec))
	inside, err := proto.Marshal(&discovery.DeltaDiscoveryResponse{TypeUrl: string(key.Type),
		Resources: []*discovery.Resource{wire, {Name: wire.GetName(), Resource: wire.GetResource()}}})
	if err != nil {
		f.Fatal(err)
	}
	whole, err := proto.Marshal(framedBy(frame.Make(inside)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(true, inside)
	f.Add(false, whole)
	f.Fuzz(func(t *testing.T, within bool, raw []byte) {
		m := new(discovery.DeltaDiscoveryResponse)
		if within {
			m = framedBy(frame.Make(raw))
		} else if proto.Unmarshal(raw, m) != nil {
			return
		}
		framed, outside := hasFrame(m), len(m.GetResources())
		if err := openFrame(m, true); err != nil {
			if !errors.Is(err, ErrFrame) {
				t.Errorf("%v", err)
			}
			return
		}
		if _, err := frameIn(m.ProtoReflect().GetUnknown()); err != nil {
			t.Errorf("there is still a frame: %v", err)
		}
		for _, r := range m.GetResources() {
			if framed && outside == 0 && r.GetVersion() == "" {
				t.Errorf("a resource has no version: %v", r)
			}
		}
	})
}
