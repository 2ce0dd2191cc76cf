package kds

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mesh/causeway/resources"
)

// Metrics counts what happens in sessions. It is an Observer. Series by zone and type are computed when they are asked
// for, by StatusCollector: nothing of them is kept for each zone.
type Metrics struct {
	messages    *prometheus.CounterVec
	resources   *prometheus.CounterVec
	bytes       *prometheus.CounterVec
	refused     *prometheus.CounterVec
	sessions    *prometheus.CounterVec
	propagation *prometheus.HistogramVec

	mu sync.Mutex
	// hot finds what each message of a type counts; replaced when one is added.
	hot atomic.Pointer[map[lineKey]*hotSeries]
}

// hotSeries are found once: looking five up by their labels cost as much as sending a message.
type hotSeries struct {
	sent, acknowledged, resources, removed, bytes prometheus.Counter
	propagation                                   prometheus.Observer
}

// NewMetrics returns metrics that are registered with r.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		messages:  counter("causeway_kds_messages_total", "Messages between the global and zones; event is sent, acknowledged, rejected or received.", "direction", "type", "event"),
		resources: counter("causeway_kds_resources_total", "Resources and removals in messages; event is sent, removed, received or written.", "direction", "type", "event"),
		bytes:     counter("causeway_kds_sent_bytes_total", "Bytes of resources sent.", "direction", "type"),
		refused:   counter("causeway_kds_refusals_total", "Resources that one side did not take; by is self or peer.", "direction", "type", "by"),
		sessions:  counter("causeway_kds_sessions_total", "Sessions that began: all but the first of a zone are reconnects.", "zone"),
		propagation: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "causeway_kds_propagation_seconds", Help: "Time from a write to its acknowledgement by a peer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60, 600},
		}, []string{"direction"}),
	}
	m.hot.Store(&map[lineKey]*hotSeries{})
	r.MustRegister(m.messages, m.resources, m.bytes, m.refused, m.sessions, m.propagation)
	return m
}

// Observe implements Observer.
func (m *Metrics) Observe(e Event) {
	switch e.Kind {
	case SessionStarted:
		m.sessions.WithLabelValues(e.Zone).Inc()
	case Rejected, Received, Withheld, Forbidden:
		m.count(&e)
	case Sent:
		s := m.series(e.Direction, e.Type)
		s.sent.Inc()
		s.resources.Add(float64(e.Resources))
		s.removed.Add(float64(e.Removed))
		s.bytes.Add(float64(e.Bytes))
	case Acknowledged:
		s := m.series(e.Direction, e.Type)
		s.acknowledged.Inc()
		if e.Age > 0 {
			s.propagation.Observe(e.Age.Seconds())
		}
	}
}

// count takes what happens too seldom to find its series beforehand.
func (m *Metrics) count(e *Event) {
	direction, typ := e.Direction.Label(), shownType(e.Type)
	switch e.Kind {
	case Rejected:
		m.messages.WithLabelValues(direction, typ, "rejected").Inc()
		m.refused.WithLabelValues(direction, typ, "peer").Add(float64(len(e.Refusals)))
	case Received:
		m.messages.WithLabelValues(direction, typ, "received").Inc()
		m.resources.WithLabelValues(direction, typ, "received").Add(float64(e.Resources))
		m.resources.WithLabelValues(direction, typ, "written").Add(float64(e.Written))
		m.refused.WithLabelValues(direction, typ, "self").Add(float64(len(e.Refusals)))
	case Withheld, Forbidden:
		m.refused.WithLabelValues(direction, typ, "self").Add(float64(len(e.Refusals)))
	}
}

// shownType is the type in labels: of those that a peer makes up there is no end.
func shownType(t resources.Type) string {
	if _, known := resources.Lookup(t); !known {
		return ""
	}
	return string(t)
}

// series finds what messages of a type that we send count.
func (m *Metrics) series(d exchange.Direction, t resources.Type) *hotSeries {
	key := lineKey{d, t}
	if s := (*m.hot.Load())[key]; s != nil {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	direction, typ := d.Label(), shownType(t)
	s := &hotSeries{
		sent: m.messages.WithLabelValues(direction, typ, "sent"), acknowledged: m.messages.WithLabelValues(direction, typ, "acknowledged"),
		resources: m.resources.WithLabelValues(direction, typ, "sent"), removed: m.resources.WithLabelValues(direction, typ, "removed"),
		bytes: m.bytes.WithLabelValues(direction, typ), propagation: m.propagation.WithLabelValues(direction),
	}
	if typ == "" {
		return s
	}
	next := maps.Clone(*m.hot.Load())
	next[key] = s
	m.hot.Store(&next)
	return s
}

// Observers passes what happens on to all of list, in order.
type Observers []Observer

// Observe implements Observer.
func (o Observers) Observe(e Event) {
	for _, one := range o {
		one.Observe(e)
	}
}

// StatusCollector shows how the sync stands. Statuses lists the peers' status when metrics are asked for; Encoder may be
// nil.
type StatusCollector struct {
	Statuses func() []SyncStatus
	Encoder  *Encoder
}

var (
	descConnected = prometheus.NewDesc("causeway_kds_connected", "1 while the zone has a session.", []string{"zone"}, nil)
	descLag       = prometheus.NewDesc("causeway_kds_lag_seconds", "Since when the receiver misses something, of the type that is furthest behind; 0 while it misses nothing, none while the sender is away.", []string{"zone", "direction"}, nil)
	descRevisions = prometheus.NewDesc("causeway_kds_lag_revisions", "How many revisions the receiver is behind, in the type that is furthest behind; none while the sender is away.", []string{"zone", "direction"}, nil)
	descTypeLag   = prometheus.NewDesc("causeway_kds_type_lag_seconds", "Since when the receiver misses something of a type; none while it does not. With ?detail=types only.", []string{"zone", "type", "direction"}, nil)
	descRefused   = prometheus.NewDesc("causeway_kds_refused", "Resources that are refused now.", []string{"zone", "type", "direction"}, nil)
	descOver      = prometheus.NewDesc("causeway_kds_over_limit", "How often the zone was over a bound since it first met it; limit is resources, bytes, refusals, resume or streams.", []string{"zone", "limit", "type"}, nil)
	descHeld      = prometheus.NewDesc("causeway_kds_held_deletions", "Deletions that wait for an operator.", []string{"zone", "type", "direction"}, nil)
	descNewStore  = prometheus.NewDesc("causeway_kds_new_store", "1 while the global's store is not the one that the zone knew, and the zone deletes nothing for what it lacks.", []string{"zone"}, nil)
	descEncoded   = prometheus.NewDesc("causeway_kds_encodings_total", "Resources that were encoded (miss) or found encoded (hit).", []string{"result"}, nil)
)

// Describe implements prometheus.Collector.
func (StatusCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descConnected, descLag, descRevisions, descRefused, descHeld, descOver, descNewStore, descEncoded} {
		out <- d
	}
}

// Collect implements prometheus.Collector. What is shown by type is there only where there is some: what all zones have is a series for
// each zone and direction, however many types there are.
func (c StatusCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, s := range c.Statuses() {
		connected := 0.0
		if s.Connected {
			connected = 1
		}
		gauge(descConnected, connected, s.Zone)
		for _, o := range s.Over {
			gauge(descOver, float64(o.Count), s.Zone, o.Limit, string(o.Type))
		}
		if s.NewStore != nil {
			gauge(descNewStore, 1, s.Zone)
		}
		for direction, lag := range furthest(s.Types) {
			gauge(descLag, lag.seconds, s.Zone, direction)
			gauge(descRevisions, float64(lag.revisions), s.Zone, direction)
		}
		for _, t := range s.Types {
			labels := []string{s.Zone, string(t.Type), t.Direction}
			if len(t.Refused) > 0 {
				gauge(descRefused, float64(len(t.Refused)), labels...)
			}
			if t.Held != nil {
				gauge(descHeld, float64(t.Held.Count), labels...)
			}
		}
	}
	if c.Encoder != nil {
		hits, misses := c.Encoder.Stats()
		out <- prometheus.MustNewConstMetric(descEncoded, prometheus.CounterValue, float64(hits), "hit")
		out <- prometheus.MustNewConstMetric(descEncoded, prometheus.CounterValue, float64(misses), "miss")
	}
}

// lag is how far behind a receiver is.
type lag struct {
	seconds   float64
	revisions uint64
}

// furthest is the lag of the types that are furthest behind, by direction, where it is known.
func furthest(types []TypeSync) map[string]lag {
	out := map[string]lag{}
	for i := range types {
		t := &types[i]
		if t.LagUnknown {
			continue
		}
		was := out[t.Direction]
		out[t.Direction] = lag{max(was.seconds, t.LagSeconds), max(was.revisions, t.LagRevisions)}
	}
	return out
}

// LagCollector shows which types are behind, for who asks for details: a series for each zone, type and direction that is.
type LagCollector struct{ Statuses func() []SyncStatus }

// Describe implements prometheus.Collector.
func (LagCollector) Describe(out chan<- *prometheus.Desc) { out <- descTypeLag }

// Collect implements prometheus.Collector.
func (c LagCollector) Collect(out chan<- prometheus.Metric) {
	for _, s := range c.Statuses() {
		for i := range s.Types {
			if t := &s.Types[i]; t.LagSeconds > 0 {
				out <- prometheus.MustNewConstMetric(descTypeLag, prometheus.GaugeValue, t.LagSeconds, s.Zone, string(t.Type), t.Direction)
			}
		}
	}
}
