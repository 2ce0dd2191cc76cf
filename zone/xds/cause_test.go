package xds_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// metric returns the samples of a metric as they would be scraped now.
func (z *zoneServer) metric(name string) []*dto.Metric {
	z.t.Helper()
	families, err := z.registry.Gather()
	must(z.t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()
		}
	}
	return nil
}

// holds polls a condition.
func (z *zoneServer) holds(what string, condition func() bool) {
	z.t.Helper()
	for end := time.Now().Add(patience); !condition(); {
		if time.Now().After(end) {
			z.t.Fatalf("never happened: %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// TestChangesAreFollowedToTheAnswer: what a proxy acknowledges counts in the histogram, from when it was written
// wherever that was, and ends the change's span; what it refuses ends the span only. What was not caused by a change is
// not counted.
func TestChangesAreFollowedToTheAnswer(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	t.Cleanup(func() { must(t, provider.Shutdown(context.Background())) })
	z := newZoneServer(t)
	z.stop()
	z.tracer = provider.Tracer("test")
	z.start()
	z.dataplane("backend", httpInbound)
	c := z.connected()
	measured := func() (count uint64, sum float64) {
		h := z.metric("causeway_xds_propagation_seconds")[0].GetHistogram()
		return h.GetSampleCount(), h.GetSampleSum()
	}
	if n, _ := measured(); n != 0 {
		t.Errorf("%d answers to a first config count as propagation", n)
	}
	// write applies a traced change that was made an hour ago elsewhere.
	write := func(id string) {
		ctx, span := z.tracer.Start(t.Context(), "write")
		defer span.End()
		spec, err := resources.NewSpec(resources.TypeMeshTrafficPermission, fmt.Appendf(nil,
			`{"targetRef": {"kind": "Mesh"}, "rules": [{"default": {"allow": [{"spiffeId": {"type": "Exact", "value": %q}}]}}]}`, id))
		must(t, err)
		r := home.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeMeshTrafficPermission,
			Mesh: "default", Name: "p"}, Spec: spec})
		cause := store.CauseOf(ctx)
		cause.Written = time.Now().Add(-time.Hour)
		_, err = z.store.Apply(ctx, store.Batch{Ops: []store.Op{{Put: r}}, Cause: cause})
		must(t, err)
	}
	write("spiffe://td/a")
	c.next(ecds)
	z.holds("one measurement, of an hour", func() bool {
		n, sum := measured()
		return n == 1 && sum >= 3600
	})
	pushes := func() (ended []tracetest.SpanStub) {
		for _, s := range spans.GetSpans() {
			if s.Name == "xds push" {
				ended = append(ended, s)
			}
		}
		return ended
	}
	z.holds("the push to end", func() bool { return len(pushes()) == 1 })
	c.refuse = true
	write("spiffe://td/b")
	c.next(ecds)
	z.holds("the refused push to end", func() bool { return len(pushes()) == 2 })
	if got := pushes(); got[0].Status.Code == codes.Error || got[1].Status.Code != codes.Error {
		t.Errorf("the spans end with %v and %v", got[0].Status, got[1].Status)
	}
	if n, _ := measured(); n != 1 {
		t.Errorf("%d measurements after a refusal", n)
	}
}

// TestProxiesByState: each Dataplane is in one state, and so is each ingress of this zone; those of others are not
// counted.
func TestProxiesByState(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	z.dataplane("away", httpInbound)
	states := func(want map[string]float64) func() bool {
		return func() bool {
			got := map[string]float64{}
			for _, m := range z.metric("causeway_xds_proxies_by_state") {
				got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
			return maps.Equal(got, want)
		}
	}
	c := z.connected()
	z.holds("one settled, one offline", states(map[string]float64{"settled": 1, "behind": 0, "failing": 0, "offline": 1}))
	c.refuse = true
	z.permission("ours", "backend", "spiffe://td/a")
	c.next(ecds)
	z.holds("one failing", states(map[string]float64{"settled": 0, "behind": 0, "failing": 1, "offline": 1}))
	c.close()
	z.holds("both offline", states(map[string]float64{"settled": 0, "behind": 0, "failing": 0, "offline": 2}))
	for zone, name := range map[string]string{home.Zone: "ours", "elsewhere": "theirs"} {
		spec, err := resources.NewSpec(resources.TypeZoneIngress, []byte(`{"networking": {"address": "192.0.2.8", "port": 10000}}`))
		must(t, err)
		r := resources.Home{Zone: zone}.Labelled(&resources.Resource{
			Key: resources.Key{Type: resources.TypeZoneIngress, Name: name}, Spec: spec})
		_, err = z.store.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: r}}})
		must(t, err)
	}
	z.holds("and the ingress", states(map[string]float64{"settled": 0, "behind": 0, "failing": 0, "offline": 3}))
}
