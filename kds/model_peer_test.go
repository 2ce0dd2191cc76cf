package kds

import (
	"maps"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
)

// modelPeer is a peer that joins parts and resumes: it has the version of each resource by its name.
type modelPeer struct {
	has map[resources.Type]map[string]string
	// listed are the names in the parts of a list so far.
	listed map[resources.Type]map[string]bool
	// unanswered are the messages that it has read.
	unanswered []*discovery.DeltaDiscoveryResponse
}

// apply does what a message says.
func (p *modelPeer) apply(t *rapid.T, m *discovery.DeltaDiscoveryResponse) {
	typ := resources.Type(m.GetTypeUrl())
	for _, other := range p.unanswered {
		if other.GetTypeUrl() == m.GetTypeUrl() {
			t.Fatalf("two unanswered messages of %s", typ)
		}
	}
	p.unanswered = append(p.unanswered, m)
	said, ok := parseProgress(m.GetSystemVersionInfo())
	if !ok {
		t.Fatalf("the progress is %q", m.GetSystemVersionInfo())
	}
	if p.has[typ] == nil {
		p.has[typ] = map[string]string{}
	}
	for _, r := range m.GetResources() {
		p.has[typ][r.GetName()] = r.GetVersion()
	}
	for _, name := range m.GetRemovedResources() {
		delete(p.has[typ], name)
	}
	if !said.list {
		return
	}
	if p.listed[typ] == nil {
		p.listed[typ] = map[string]bool{}
	}
	for _, r := range m.GetResources() {
		p.listed[typ][r.GetName()] = true
	}
	if !said.more {
		maps.DeleteFunc(p.has[typ], func(name, _ string) bool { return !p.listed[typ][name] })
		delete(p.listed, typ)
	}
}

// modelStream hands what a sender sends to the peer. It asserts that what is sent by whoever brings an answer or a
// flush cannot block: invariant 5.
type modelStream struct {
	recordingStream
	sender *sender
	// prompt is set while tryAnswer or notify is at work.
	prompt bool
	t      *rapid.T
}

func (m *modelStream) SendMsg(message any) error {
	if m.prompt && !m.sender.prompt() {
		m.t.Errorf("a message was sent that may block")
	}
	return m.recordingStream.SendMsg(message)
}
