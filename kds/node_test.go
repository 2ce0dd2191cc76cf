package kds

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestTextsOfPeersStayText: what a peer says of itself is cut between characters. A zone's status, in which half a
// character stands, cannot be encoded, and the zone would stay what it was before, for good.
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
