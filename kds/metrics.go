package kds

import (
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
	r.MustRegister(m.messages, m.resources, m.bytes, m.refused, m.sessions, m.propagation)
	return m
}

// Observe implements Observer.
func (m *Metrics) Observe(e Event) {
	direction, typ := e.Direction.label(), string(e.Type)
	if _, known := resources.Lookup(e.Type); !known {
		typ = ""
	}
	switch e.Kind {
	case SessionStarted:
		m.sessions.WithLabelValues(e.Zone).Inc()
	case Sent:
		m.messages.WithLabelValues(direction, typ, "sent").Inc()
		m.resources.WithLabelValues(direction, typ, "sent").Add(float64(e.Resources))
		m.resources.WithLabelValues(direction, typ, "removed").Add(float64(e.Removed))
		m.bytes.WithLabelValues(direction, typ).Add(float64(e.Bytes))
	case Acknowledged:
		m.messages.WithLabelValues(direction, typ, "acknowledged").Inc()
		if e.Age > 0 {
			m.propagation.WithLabelValues(direction).Observe(e.Age.Seconds())
		}
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
	descLag       = prometheus.NewDesc("causeway_kds_lag_seconds", "Since when the receiver misses something; 0 while it does not.", []string{"zone", "type", "direction"}, nil)
	descRevisions = prometheus.NewDesc("causeway_kds_lag_revisions", "How many revisions the receiver is behind.", []string{"zone", "type", "direction"}, nil)
	descRefused   = prometheus.NewDesc("causeway_kds_refused", "Resources that are refused now.", []string{"zone", "type", "direction"}, nil)
	descHeld      = prometheus.NewDesc("causeway_kds_held_deletions", "Deletions that wait for an operator.", []string{"zone", "type", "direction"}, nil)
	descNewStore  = prometheus.NewDesc("causeway_kds_new_store", "1 while the global's store is not the one that the zone knew, and the zone deletes nothing for what it lacks.", []string{"zone"}, nil)
	descEncoded   = prometheus.NewDesc("causeway_kds_encodings_total", "Resources that were encoded (miss) or found encoded (hit).", []string{"result"}, nil)
)

// Describe implements prometheus.Collector.
func (StatusCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descConnected, descLag, descRevisions, descRefused, descHeld, descNewStore, descEncoded} {
		out <- d
	}
}

// Collect implements prometheus.Collector. Refused and held are there only where there are some.
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
		if s.NewStore != nil {
			gauge(descNewStore, 1, s.Zone)
		}
		for _, t := range s.Types {
			labels := []string{s.Zone, string(t.Type), t.Direction}
			gauge(descLag, t.LagSeconds, labels...)
			gauge(descRevisions, float64(t.LagRevisions), labels...)
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
