package kds

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
)

// Metrics counts the events of sessions. It is an Observer. StatusCollector computes series by zone and type when they
// are scraped: Metrics holds nothing for each zone but its count of sessions.
type Metrics struct {
	messages    *prometheus.CounterVec
	resources   *prometheus.CounterVec
	bytes       *prometheus.CounterVec
	refused     *prometheus.CounterVec
	frames      *prometheus.CounterVec
	sessions    *prometheus.CounterVec
	propagation *prometheus.HistogramVec

	mu sync.Mutex
	// hot finds the counters of each type's messages; it is replaced when one is added.
	hot atomic.Pointer[map[seriesKey]*hotSeries]
}

type seriesKey struct {
	direction exchange.Direction
	typ       resources.Type
}

// hotSeries holds counters that are looked up once: looking five up by their labels costs as much as sending a message.
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
		bytes:     counter("causeway_kds_sent_bytes_total", "Bytes of resources sent, compressed where the peer takes that.", "direction", "type"),
		refused: counter("causeway_kds_refusals_total", "Resources that one side refused; by is self or peer.",
			"direction", "type", "by"),
		frames: counter("causeway_kds_refused_frames_total",
			"Compressed frames of a peer that were not valid, or held too much; each ended its session.", "direction"),
		sessions: counter("causeway_kds_sessions_total",
			"Sessions that started since the server did: all but the first of a zone are reconnects.", "zone"),
		propagation: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "causeway_kds_propagation_seconds", Help: "Time from a write to its acknowledgement by a peer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60, 600},
		}, []string{"direction"}),
	}
	m.hot.Store(&map[seriesKey]*hotSeries{})
	r.MustRegister(m.messages, m.resources, m.bytes, m.refused, m.frames, m.sessions, m.propagation)
	return m
}

// Observe implements Observer.
func (m *Metrics) Observe(e Event) {
	switch e.Kind {
	case SessionStarted:
		m.sessions.WithLabelValues(e.Zone).Inc()
	case Rejected, Received, Withheld, Forbidden:
		m.count(&e)
	case FrameRefused:
		m.frames.WithLabelValues(e.Direction.Label()).Inc()
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

// count counts the events that are too rare to keep their series.
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

// shownType returns the type as a label value. It is empty for unknown types, of which a peer can invent any number.
func shownType(t resources.Type) string {
	if _, known := resources.Lookup(t); !known {
		return ""
	}
	return string(t)
}

// series returns the counters of the messages of a type that this server sends.
func (m *Metrics) series(d exchange.Direction, t resources.Type) *hotSeries {
	key := seriesKey{d, t}
	if s := (*m.hot.Load())[key]; s != nil {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	direction, typ := d.Label(), shownType(t)
	s := &hotSeries{
		sent: m.messages.WithLabelValues(direction, typ, "sent"), acknowledged: m.messages.WithLabelValues(direction,
			typ, "acknowledged"),
		resources: m.resources.WithLabelValues(direction, typ, "sent"),
		removed:   m.resources.WithLabelValues(direction, typ, "removed"),
		bytes:     m.bytes.WithLabelValues(direction, typ), propagation: m.propagation.WithLabelValues(direction),
	}
	if typ == "" {
		return s
	}
	next := maps.Clone(*m.hot.Load())
	next[key] = s
	m.hot.Store(&next)
	return s
}

// Observers passes events on to each of the list, in order.
type Observers []Observer

// Observe implements Observer.
func (o Observers) Observe(e Event) {
	for _, one := range o {
		one.Observe(e)
	}
}
