package kds

import (
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/kds/exchange"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// maxPeerText bounds, in bytes, each text of a peer about itself that is kept and shown to operators.
const maxPeerText = 64 << 10

// nodeOf returns the node that describes this server in a stream's requests; id is the zone's name in both directions.
// Source: Kuma's wire format, "Node in DeltaDiscoveryRequest".
func nodeOf(id string, self Peer) *corev3.Node {
	features := &structpb.ListValue{}
	for _, name := range self.Features.Names() {
		features.Values = append(features.Values, structpb.NewStringValue(name))
	}
	version := &structpb.Struct{Fields: map[string]*structpb.Value{
		"version":   structpb.NewStringValue(self.Version),
		"gitTag":    structpb.NewStringValue(self.GitTag),
		"gitCommit": structpb.NewStringValue(self.GitCommit),
		"buildDate": structpb.NewStringValue(self.BuildDate),
	}}
	return &corev3.Node{Id: id, Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
		"control-plane-id": structpb.NewStringValue(self.Instance),
		"config":           structpb.NewStringValue(self.Config),
		"features":         structpb.NewListValue(features),
		"version": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			"kumaCp": structpb.NewStructValue(version),
		}}),
	}}}
}

// peerOf reads what nodeOf writes; missing fields stay empty.
func peerOf(node *corev3.Node) *Peer {
	fields := node.GetMetadata().GetFields()
	version := fields["version"].GetStructValue().GetFields()["kumaCp"].GetStructValue().GetFields()
	text := func(v *structpb.Value) string {
		s := v.GetStringValue()
		// A substring would keep the whole string in memory, and end within a character.
		return strings.Clone(strings.ToValidUTF8(s[:min(len(s), maxPeerText)], ""))
	}
	return &Peer{
		Instance:  text(fields["control-plane-id"]),
		Config:    text(fields["config"]),
		Version:   text(version["version"]),
		GitTag:    text(version["gitTag"]),
		GitCommit: text(version["gitCommit"]),
		BuildDate: text(version["buildDate"]),
		Features:  featuresOfNode(node.GetMetadata()),
	}
}

// CheckZoneName accepts DNS labels. Source: Kuma's wire format, "Limits, keepalive, stream life".
func CheckZoneName(name string) error {
	valid := name != "" && len(name) <= 63 && name[0] != '-' && name[len(name)-1] != '-'
	for i := 0; valid && i < len(name); i++ {
		c := name[i]
		valid = c == '-' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
	}
	if !valid {
		return fmt.Errorf("%w: %q", ErrZoneName, truncate(name))
	}
	return nil
}

// featuresOfNode reads the features in a peer's first request.
func featuresOfNode(metadata *structpb.Struct) exchange.Features {
	var names []string
	for _, v := range metadata.GetFields()["features"].GetListValue().GetValues() {
		names = append(names, v.GetStringValue())
	}
	return exchange.ParseFeatures(names)
}
