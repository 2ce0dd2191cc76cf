package kds

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestTextsOfPeersStayText: what a peer says of itself is cut between characters. A zone's status, in which half a
// character stands, cannot be encoded, and the zone would keep its previous version for good.
func TestTextsOfPeersStayText(t *testing.T) {
	t.Parallel()
	for before := range utf8.UTFMax {
		long := strings.Repeat("a", maxPeerText-before) + "\U0001F600"
		node := nodeOf("zone-1", Peer{Instance: long, Config: long, Version: long, GitTag: long, GitCommit: long,
			BuildDate: long})
		raw, err := proto.Marshal(node)
		if err != nil {
			t.Fatal(err)
		}
		arrived := new(corev3.Node)
		if err := proto.Unmarshal(raw, arrived); err != nil {
			t.Fatal(err)
		}
		p := peerOf(arrived)
		for _, text := range []string{p.Instance, p.Config, p.Version, p.GitTag, p.GitCommit, p.BuildDate} {
			if len(text) > maxPeerText || len(text) < maxPeerText-before {
				t.Errorf("%d bytes of %d are kept", len(text), len(long))
			}
			if _, err := proto.Marshal(structpb.NewStringValue(text)); err != nil {
				t.Errorf("%d bytes before the limit: %v", before, err)
			}
		}
	}
}

// TestPeersAreToldOnceWhoAsks checks that a peer which resumes is sent this side's description with the first request of
// a stream alone, and any other with that for each type.
func TestPeersAreToldOnceWhoAsks(t *testing.T) {
	t.Parallel()
	for _, resumes := range []bool{true, false} {
		session := newSession(t.Context(), 1, "zone-1", silent{}, time.Now)
		v := testReceiver(exchange.GlobalToZone, store.NewMemory())
		v.session, v.resume, v.node = session, resumes, nodeOf("zone-1", Peer{Version: "1", Features: exchange.OwnFeatures()})
		var described, all int
		v.send = func(_ context.Context, m *discovery.DeltaDiscoveryRequest) error {
			if all++; m.GetNode().GetMetadata() != nil {
				described++
			}
			if m.GetNode().GetId() != "zone-1" {
				t.Errorf("a request of node %q", m.GetNode().GetId())
			}
			return nil
		}
		if err := v.ask(t.Context()); err != nil {
			t.Fatal(err)
		}
		if all < 2 || resumes && described != 1 || !resumes && described != all {
			t.Errorf("resumes %t: %d of %d requests have a description", resumes, described, all)
		}
	}
}
