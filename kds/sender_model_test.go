package kds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// senderModel drives a sender as its three kinds of goroutine do, one at a time.
type senderModel struct {
	tb     testing.TB
	store  store.Store
	config senderConfig
	sender *sender
	stream *modelStream
	peer   *modelPeer
	read   int
	writes int
}

var modelTypes = []resources.Type{resources.TypeMesh, resources.TypeMeshTrafficPermission, resources.TypeMeshService}

// connect begins a stream. The peer has what it had.
func (m *senderModel) connect(t *rapid.T) {
	config := m.config
	config.inspect = checkInvariants(t)
	config.session = newSession(context.Background(), 1, "zone-1", silent{}, time.Now)
	m.sender = newSender(config)
	m.stream = &modelStream{sender: m.sender, t: t}
	m.sender.stream = m.stream
	m.read, m.peer.unanswered, m.peer.listed = 0, nil, map[resources.Type]map[string]bool{}
}

// deliver gives the peer what was sent, and begins another stream if this one has ended.
func (m *senderModel) deliver(t *rapid.T, err error) {
	for ; m.read < len(m.stream.sent); m.read++ {
		m.peer.apply(t, m.stream.sent[m.read])
	}
	if err = errors.Join(err, m.sender.failed); err != nil {
		t.Fatalf("the stream ended: %v", err)
	}
}

// request does what the goroutine that reads the stream does, and, if it leaves the request, what run does.
func (m *senderModel) request(t *rapid.T, r *discovery.DeltaDiscoveryRequest) {
	m.stream.prompt = true
	done := m.sender.tryAnswer(r)
	m.stream.prompt = false
	var err error
	if !done {
		m.sender.mu.Lock()
		err = m.sender.handle(r)
		m.sender.unlock()
	}
	m.deliver(t, err)
}

// run does once what run does between two waits.
func (m *senderModel) run(t *rapid.T) {
	m.sender.mu.Lock()
	if !m.sender.listing() {
		m.sender.slot.release()
	}
	_, _, err := m.sender.step(t.Context(), true)
	if !m.sender.listing() {
		m.sender.slot.release()
	}
	m.sender.unlock()
	m.deliver(t, err)
}

func (m *senderModel) subscribe(t *rapid.T) {
	m.subscribeTo(t, rapid.SampledFrom(modelTypes).Draw(t, "type"))
}

func (m *senderModel) subscribeTo(t *rapid.T, typ resources.Type) {
	r := &discovery.DeltaDiscoveryRequest{TypeUrl: string(typ), ResourceNamesSubscribe: []string{"*"},
		Node: nodeOf("zone-1", Peer{Features: exchange.OwnFeatures()})}
	if rapid.Bool().Draw(t, "resumes") {
		r.InitialResourceVersions = maps.Clone(m.peer.has[typ])
	}
	m.request(t, r)
}

// answer acknowledges or refuses a message, or one that does not exist.
func (m *senderModel) answer(t *rapid.T) {
	r := &discovery.DeltaDiscoveryRequest{TypeUrl: string(rapid.SampledFrom(modelTypes).Draw(t, "type")),
		ResponseNonce: "no message"}
	if unsent := m.sender.outbox.unsent; unsent != nil && rapid.Bool().Draw(t, "too early") {
		r.TypeUrl, r.ResponseNonce = unsent.message.typeURL, unsent.message.nonce
	} else if len(m.peer.unanswered) > 0 {
		i := rapid.IntRange(0, len(m.peer.unanswered)-1).Draw(t, "message")
		last := m.peer.unanswered[i]
		m.peer.unanswered = append(m.peer.unanswered[:i:i], m.peer.unanswered[i+1:]...)
		r.TypeUrl, r.ResponseNonce = last.GetTypeUrl(), last.GetNonce()
		if rapid.Bool().Draw(t, "refuses") {
			r.ErrorDetail = &status.Status{Message: "x.default: no"}
		}
	}
	m.request(t, r)
}

// write changes or removes a resource: of the global, or a copy of another zone's.
func (m *senderModel) write(t *rapid.T) {
	m.writes++
	key := resources.Key{Type: rapid.SampledFrom(modelTypes).Draw(t, "type"), Mesh: "default",
		Name: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")}
	home, spec := globalHome, `{}`
	switch key.Type {
	case resources.TypeMesh:
		key.Mesh = ""
	case resources.TypeMeshService:
		home, spec = zoneHome("zone-2"), fmt.Sprintf(`{"ports":[{"port":%d}]}`, m.writes)
	default:
		id := fmt.Sprint("p", m.writes)
		if rapid.Bool().Draw(t, "large") {
			id += strings.Repeat("y", 2*promptBytes/3)
		}
		_, spec = permission(id)
	}
	if rapid.IntRange(0, 3).Draw(t, "removes") == 0 {
		if m.store.Snapshot().Get(key) != nil {
			remove(m.tb, m.store, key)
		}
		return
	}
	put(m.tb, m.store, written(m.tb, home, key, spec, "round", fmt.Sprint(m.writes)))
}

// burst writes more than the changelog's window holds.
func (m *senderModel) burst(t *rapid.T) {
	for range 8 {
		m.write(t)
	}
}

// change is a flush of a few writes that finds the stream at rest.
func (m *senderModel) change(t *rapid.T) {
	m.settle(t)
	for range rapid.IntRange(1, 4).Draw(t, "writes") {
		m.write(t)
	}
	m.notify(t)
}

// reconnect ends the stream and begins another, with some of the types.
func (m *senderModel) reconnect(t *rapid.T) {
	m.sender.slot.release()
	m.connect(t)
	for _, typ := range modelTypes {
		if rapid.IntRange(0, 3).Draw(t, "subscribes") > 0 {
			m.subscribeTo(t, typ)
		}
	}
}

func (m *senderModel) notify(t *rapid.T) {
	m.stream.prompt = true
	m.sender.notify()
	m.stream.prompt = false
	m.deliver(t, nil)
}

// settle answers until nothing more comes, and compares the peer with the store.
func (m *senderModel) settle(t *rapid.T) {
	for range 1000 {
		m.run(t)
		if len(m.peer.unanswered) == 0 {
			break
		}
		next := m.peer.unanswered[0]
		m.peer.unanswered = m.peer.unanswered[1:]
		m.request(t, &discovery.DeltaDiscoveryRequest{TypeUrl: next.GetTypeUrl(), ResponseNonce: next.GetNonce()})
	}
	if len(m.peer.unanswered) > 0 || m.sender.outbox.unsent != nil || !m.sender.flushed {
		t.Fatalf("it does not settle")
	}
	snapshot := m.store.Snapshot()
	for typ := range m.sender.types {
		want := map[string]string{}
		v := newView(m.sender.packer.audience, snapshot)
		for r := range snapshot.List(store.Query{Type: typ}) {
			if e := m.sender.packer.sendable(r, v); e != nil {
				want[e.name] = e.version
			}
		}
		if !maps.Equal(m.peer.has[typ], want) {
			t.Fatalf("of %s the peer has %v, want %v", typ, m.peer.has[typ], want)
		}
	}
}

// TestSenderModel plays writes, subscriptions, answers, flushes and reconnects in any order. The invariants hold after
// each step, nothing that may block is sent by a flush or an answer, and in the end the peer has what it should.
func TestSenderModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := store.NewMemoryWith(store.ViewConfig{WindowCommits: 5})
		put(t, s, written(t, globalHome, ZoneKey("zone-1"), `{}`), written(t, globalHome, ZoneKey("zone-2"), `{}`))
		m := &senderModel{tb: t, store: s, peer: &modelPeer{has: map[resources.Type]map[string]string{}},
			config: senderConfig{direction: exchange.GlobalToZone, zone: "zone-1", identifier: "global", store: s, features: exchange.OwnFeatures(),
				pace: unpaced{s}, slots: newSyncSlots(1, nil), filter: exchange.NewFilter(),
				encoder: newEncoder(exchange.NewMapping(), nil), refusals: tracker.NewRefusals(time.Now, nil),
				maxMessage: rapid.SampledFrom([]int{1, 512, DefaultMaxMessageSize}).Draw(rt, "size of messages"),
				maxWhole:   MaxMessageSize, sendTimeout: time.Minute, answerTimeout: time.Hour, now: time.Now, log: testLog()}}
		m.connect(rt)
		m.burst(rt)
		for _, typ := range modelTypes {
			m.subscribeTo(rt, typ)
		}
		m.settle(rt)
		enabled := true
		rt.Repeat(map[string]func(*rapid.T){
			"subscribe": m.subscribe, "write": m.write, "write again": m.write, "answer": m.answer,
			"answer another": m.answer, "flush": m.notify, "run": m.run,
			"burst": m.burst, "change": m.change, "another change": m.change, "reconnect": m.reconnect,
			"zone-2 is enabled or disabled": func(*rapid.T) {
				enabled = !enabled
				put(t, s, written(t, globalHome, ZoneKey("zone-2"), fmt.Sprintf(`{"enabled":%t}`, enabled)))
			},
			"overdue": func(*rapid.T) { m.sender.mu.Lock(); m.sender.slot.release(); m.sender.unlock() },
		})
		m.settle(rt)
		m.sender.slot.release()
	})
}
