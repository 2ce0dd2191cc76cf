package global

import (
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

// insight builds the ZoneInsight, which is immutable afterwards. The caller holds i.mu. Source: Kuma's wire format,
// "Protobuf field numbers", ZoneInsight rules.
func (i *insights) insight(zone string, z *zoneInsight) *systempb.ZoneInsight {
	insight := &systempb.ZoneInsight{Subscriptions: slices.Clone(z.past)}
	for _, s := range z.subscriptions {
		insight.Subscriptions = append(insight.Subscriptions, i.subscription(zone, s))
	}
	// Readers use the last one, so the session that began last on this replica stays last, whatever the clock said
	// then.
	if n := len(insight.Subscriptions); n > 0 {
		slices.SortStableFunc(insight.Subscriptions[:n-1], func(a, b *systempb.KDSSubscription) int {
			return a.GetConnectTime().AsTime().Compare(b.GetConnectTime().AsTime())
		})
	}
	if extra := len(insight.Subscriptions) - keptSubscriptions; extra > 0 {
		insight.Subscriptions = insight.Subscriptions[extra:]
	}
	if !z.healthChecked.IsZero() {
		insight.HealthCheck = &systempb.HealthCheck{Time: timestamppb.New(z.healthChecked)}
	}
	insight.KdsStreams = &systempb.KDSStreams{
		GlobalToZone: i.stream(z.streams[exchange.GlobalToZone]), ZoneToGlobal: i.stream(z.streams[exchange.ZoneToGlobal]),
	}
	return insight
}

func (i *insights) subscription(zone string, s *subscription) *systempb.KDSSubscription {
	out := &systempb.KDSSubscription{
		Id: i.instance + "-" + zone + "-" + strconv.FormatUint(s.session, 10), GlobalInstanceId: i.instance,
		ConnectTime: timestamppb.New(s.connected),
		Status: &systempb.KDSSubscriptionStatus{Total: &systempb.KDSServiceStats{},
			Stat: map[string]*systempb.KDSServiceStats{}},
	}
	if !s.disconnected.IsZero() {
		out.DisconnectTime = timestamppb.New(notBefore(s.disconnected, s.connected))
	}
	if !s.updated.IsZero() {
		out.Status.LastUpdateTime = timestamppb.New(notBefore(s.updated, s.connected))
	}
	for _, c := range s.types {
		out.Status.Stat[string(c.typ)] = &systempb.KDSServiceStats{ResponsesSent: c.sent,
			ResponsesAcknowledged: c.acknowledged, ResponsesRejected: c.rejected}
		out.Status.Total.ResponsesSent += c.sent
		out.Status.Total.ResponsesAcknowledged += c.acknowledged
		out.Status.Total.ResponsesRejected += c.rejected
	}
	if p := s.peer; p != nil {
		out.ZoneInstanceId, out.Config, out.AuthTokenProvided = p.Instance, p.Config, p.AuthTokenProvided
		out.Version = &systempb.Version{KumaCp: &systempb.KumaCpVersion{
			Version: p.Version, GitTag: p.GitTag, GitCommit: p.GitCommit, BuildDate: p.BuildDate, KumaCpGlobalCompatible: true,
		}}
	}
	return out
}

func (i *insights) stream(opened time.Time) *systempb.KDSStream {
	if opened.IsZero() {
		return nil
	}
	return &systempb.KDSStream{GlobalInstanceId: i.instance, ConnectTime: timestamppb.New(opened)}
}

// notBefore returns the time to show for a session's event: the clock may have been set back since the session began.
func notBefore(t, began time.Time) time.Time {
	if t.Round(0).Before(began.Round(0)) {
		return began
	}
	return t
}

func insightKey(zone string) resources.Key {
	return resources.Key{Type: resources.TypeZoneInsight, Name: zone}
}
