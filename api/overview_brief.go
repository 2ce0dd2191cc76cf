package api

import (
	"encoding/json"
	"net/url"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

// briefQuery makes a list of overviews show who is connected, how far behind, and with which version, and nothing else: the
// counts by type of each session are most of an overview, and a list of a thousand zones shows none of them.
const briefQuery = "brief"

// BoolQuery reads a parameter that is true or false. Absent means false. Given without a value it is neither.
func BoolQuery(q url.Values, name string) (bool, error) {
	if !q.Has(name) {
		return false, nil
	}
	switch text := q.Get(name); text {
	case "true", "false":
		return text == "true", nil
	default:
		return false, BadField(name, "want true or false, got %q", text)
	}
}

// briefOverview is an overview without labels, times, the Dataplane, and all of the insight but the last session and the
// problems of a proxy. Its fields have the names and forms of the whole one.
type briefOverview struct {
	briefName
	Zone             json.RawMessage `json:"zone,omitempty"`
	ZoneInsight      json.RawMessage `json:"zoneInsight,omitempty"`
	DataplaneInsight json.RawMessage `json:"dataplaneInsight,omitempty"`
	Refused          int             `json:"refused,omitempty"`
	LeftOut          int             `json:"leftOut,omitempty"`
	Unknown          *Unknown        `json:"unknown,omitempty"`
}

// briefName says which resource an overview is of.
type briefName struct {
	Type      string `json:"type"`
	Mesh      string `json:"mesh,omitempty"`
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	KRI       string `json:"kri,omitempty"`
}

// briefMetadata is what a list shows of what a zone says of a proxy: why something has no effect on it, by source.
type briefMetadata struct {
	Problems map[string]string `json:"problems,omitempty"`
}

// briefSession is what a list shows of a session.
type briefSession struct {
	ConnectTime    time.Time `json:"connectTime,omitzero"`
	DisconnectTime time.Time `json:"disconnectTime,omitzero"`
	Status         struct {
		Total briefTotal `json:"total"`
	} `json:"status"`
	Version briefVersion `json:"version,omitzero"`
}

// briefTotal counts messages, as texts: JSON of Protobuf has those of 64 bits so.
type briefTotal struct {
	Sent         uint64 `json:"responsesSent,string,omitempty"`
	Acknowledged uint64 `json:"responsesAcknowledged,string,omitempty"`
	Rejected     uint64 `json:"responsesRejected,string,omitempty"`
}

type briefVersion struct {
	ControlPlane *namedVersion `json:"kumaCp,omitempty"`
	Envoy        *namedVersion `json:"envoy,omitempty"`
}

type namedVersion struct {
	Version string `json:"version"`
}

// appendBrief is appendOverview for a brief one.
func (s *Server) appendBrief(dst []byte, v view, r *resources.Resource, reader *Reader) []byte {
	o := briefOverview{briefName: briefName{Type: string(r.Type) + "Overview", Mesh: r.Mesh, Name: r.Name, Namespace: r.Namespace,
		KRI: resources.KRIOf(r).String()}, Unknown: s.unknown(r), Refused: s.refused(v, r, reader)}
	into := &o.DataplaneInsight
	if r.Type == resources.TypeZone {
		o.Zone, into = r.Spec.JSON(), &o.ZoneInsight
	}
	key := r.Key
	key.Type = insightOf(r.Type)
	switch insight := v.get(key); {
	case !reader.insightOf(r):
		o.LeftOut = 1
	case insight != nil:
		*into = briefInsight(insight)
	}
	raw, err := json.Marshal(&o)
	if err != nil {
		return s.appendOverview(dst, v, r, reader)
	}
	return append(dst, raw...)
}

// briefInsight returns an insight with the last session and the problems only, or the whole one if it does not decode.
func briefInsight(insight *resources.Resource) json.RawMessage {
	var last []briefSession
	var metadata briefMetadata
	if insight.Type == resources.TypeZoneInsight {
		zone, err := resources.SpecAs[systempb.ZoneInsight](insight)
		if err != nil {
			return insight.Spec.JSON()
		}
		if all := zone.GetSubscriptions(); len(all) > 0 {
			last = append(last, briefZoneSession(all[len(all)-1]))
		}
	} else {
		proxy, err := resources.SpecAs[meshpb.DataplaneInsight](insight)
		if err != nil {
			return insight.Spec.JSON()
		}
		if all := proxy.GetSubscriptions(); len(all) > 0 {
			last = append(last, briefProxySession(all[len(all)-1]))
		}
		metadata.Problems = problemsOf(proxy)
	}
	raw, err := json.Marshal(struct {
		Metadata      briefMetadata  `json:"metadata,omitzero"`
		Subscriptions []briefSession `json:"subscriptions,omitempty"`
	}{metadata, last})
	if err != nil {
		return insight.Spec.JSON()
	}
	return raw
}

func briefZoneSession(of *systempb.KDSSubscription) briefSession {
	out := briefSession{ConnectTime: timeOf(of.GetConnectTime()), DisconnectTime: timeOf(of.GetDisconnectTime())}
	total := of.GetStatus().GetTotal()
	out.Status.Total = briefTotal{total.GetResponsesSent(), total.GetResponsesAcknowledged(), total.GetResponsesRejected()}
	out.Version.ControlPlane = versionNamed(of.GetVersion().GetKumaCp().GetVersion())
	return out
}

func briefProxySession(of *meshpb.DiscoverySubscription) briefSession {
	out := briefSession{ConnectTime: timeOf(of.GetConnectTime()), DisconnectTime: timeOf(of.GetDisconnectTime())}
	total := of.GetStatus().GetTotal()
	out.Status.Total = briefTotal{total.GetResponsesSent(), total.GetResponsesAcknowledged(), total.GetResponsesRejected()}
	out.Version.Envoy = versionNamed(of.GetVersion().GetEnvoy().GetVersion())
	return out
}

func versionNamed(version string) *namedVersion {
	if version == "" {
		return nil
	}
	return &namedVersion{version}
}

// timeOf returns the zero time for none.
func timeOf(at *timestamppb.Timestamp) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.AsTime()
}
