package main

import (
	"cmp"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

// overviewSuffix extends a list's path. Each item then includes the server's observations.
const overviewSuffix = "/_overview"

// protoJSON is a protobuf message in its JSON form. Message is nil if the answer lacks it.
type protoJSON[M proto.Message] struct{ Message M }

// UnmarshalJSON ignores fields that this version does not know.
func (p *protoJSON[M]) UnmarshalJSON(raw []byte) error {
	p.Message = p.Message.ProtoReflect().New().Interface().(M)
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(raw, p.Message)
}

// dataplaneOverview is one item of `/dataplanes/_overview`.
type dataplaneOverview struct {
	Mesh      string                              `json:"mesh"`
	Namespace string                              `json:"namespace"`
	Name      string                              `json:"name"`
	Dataplane protoJSON[*meshpb.Dataplane]        `json:"dataplane"`
	Insight   protoJSON[*meshpb.DataplaneInsight] `json:"dataplaneInsight"`
	// LeftOut is 1 if the caller may not read the insight.
	LeftOut int `json:"leftOut"`
	// Unknown says why the server does not know whether the proxy is connected.
	Unknown *api.Unknown `json:"unknown"`
}

// zoneOverview is one item of `/zones/_overview`.
type zoneOverview struct {
	Name    string                           `json:"name"`
	Zone    protoJSON[*systempb.Zone]        `json:"zone"`
	Insight protoJSON[*systempb.ZoneInsight] `json:"zoneInsight"`
	// Unknown is set if the server does not know whether the zone is connected.
	Unknown *api.Unknown `json:"unknown"`
}

type inboundSpec = meshpb.Dataplane_Networking_Inbound

// sectionOf returns the name of an inbound in targetRefs and KRIs.
func sectionOf(in *inboundSpec) string {
	return cmp.Or(in.GetName(), strconv.FormatUint(uint64(in.GetPort()), 10))
}

func protocolOf(in *inboundSpec) string {
	return cmp.Or(in.GetProtocol(), in.GetTags()[protocolTag], "tcp")
}

// protocolTag is the older form of an inbound's protocol.
const protocolTag = "kuma.io/protocol"
