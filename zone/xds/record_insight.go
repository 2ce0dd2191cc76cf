package xds

import (
	"maps"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
)

// maxSubscriptions is the number of a proxy's streams that its insight keeps.
const maxSubscriptions = 5

// restore continues from a stored insight. Streams that it shows as open ended with the process that served them.
func (r *record) restore(old *resources.Resource) {
	if old == nil {
		return
	}
	spec, err := resources.SpecAs[meshpb.DataplaneInsight](old)
	if err != nil {
		return
	}
	r.past = append(r.past, spec.GetSubscriptions()...)
	r.mtls = spec.GetMTLS()
}

// write returns the operation that updates the status store, and a function to call with the store's revision
// afterwards.
func (r *record) write(home resources.Home) (op store.Op, wrote func(revision uint64), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	problems := r.problemsLocked()
	wrote = func(revision uint64) { r.wrote(problems, revision) }
	if !r.dataplane {
		return store.Op{Delete: r.key}, wrote, nil
	}
	insight, err := r.insightLocked(home)
	return store.Op{Put: insight}, wrote, err
}

func (r *record) wrote(problems map[string]string, revision uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !maps.Equal(r.written, problems) {
		r.written, r.writtenAt = problems, revision
	}
}

// reported returns the record's problems, and the revision of the status store that first contains these; ok is false
// before that.
func (r *record) reported() (problems map[string]string, at uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	problems = r.problemsLocked()
	return problems, r.writtenAt, maps.Equal(problems, r.written)
}

// insightLocked returns the record as a resource.
func (r *record) insightLocked(home resources.Home) (*resources.Resource, error) {
	out := &meshpb.DataplaneInsight{MTLS: r.mtls}
	keep := max(maxSubscriptions-len(r.subscriptions), 0)
	out.Subscriptions = append(out.Subscriptions, r.past[max(len(r.past)-keep, 0):]...)
	for _, s := range r.subscriptions {
		out.Subscriptions = append(out.Subscriptions, s.proto())
	}
	if problems := r.problemsLocked(); len(problems) > 0 {
		fields := map[string]*structpb.Value{}
		for source, text := range problems {
			fields[source] = structpb.NewStringValue(text)
		}
		out.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{"problems": structpb.NewStructValue(
			&structpb.Struct{Fields: fields})}}
	}
	spec, err := resources.NewStatusSpec(resources.TypeDataplaneInsight, out)
	if err != nil {
		return nil, err
	}
	res := &resources.Resource{Key: r.key, Spec: spec}
	res.Labels = home.ComputedLabels(res)
	return res, nil
}

func (s *subscription) proto() *meshpb.DiscoverySubscription {
	status := &meshpb.DiscoverySubscriptionStatus{
		Total: &meshpb.DiscoveryServiceStats{}, Cds: s.stats[kindCluster].proto(), Lds: s.stats[kindListener].proto(),
		Eds: s.stats[kindEndpoint].proto(), Rds: s.stats[kindRoute].proto(),
	}
	for _, n := range s.stats {
		status.Total.ResponsesSent += n.sent
		status.Total.ResponsesAcknowledged += n.acknowledged
		status.Total.ResponsesRejected += n.rejected
	}
	out := &meshpb.DiscoverySubscription{
		Id: s.id, ControlPlaneInstanceId: s.instance, ConnectTime: timestamppb.New(s.connected), Status: status,
		Generation: s.ordinal,
		Version:    &meshpb.Version{Envoy: &meshpb.EnvoyVersion{Version: s.envoy}},
	}
	if !s.updated.IsZero() {
		status.LastUpdateTime = timestamppb.New(s.notBefore(s.updated))
	}
	if !s.ended.IsZero() {
		out.DisconnectTime = timestamppb.New(s.notBefore(s.ended))
	}
	return out
}

func (s stats) proto() *meshpb.DiscoveryServiceStats {
	return &meshpb.DiscoveryServiceStats{ResponsesSent: s.sent, ResponsesAcknowledged: s.acknowledged,
		ResponsesRejected: s.rejected}
}

// notBefore returns the time to show for an event on the stream: never before the stream began, even if the clock was
// set back since.
func (s *subscription) notBefore(t time.Time) time.Time {
	if t.Round(0).Before(s.connected.Round(0)) {
		return s.connected
	}
	return t
}
