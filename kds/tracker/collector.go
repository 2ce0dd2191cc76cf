package tracker

import (
	"github.com/prometheus/client_golang/prometheus"
)

// StatusCollector exports the sync status. Statuses returns the peers' status at each scrape; Encoder may be nil.
type StatusCollector struct {
	Statuses func() []SyncStatus
	Encoder  interface{ Stats() (hits, misses uint64) }
}

var (
	descConnected = prometheus.NewDesc("causeway_kds_connected", "1 while the zone has a session, 0 while it has none; on a global, no series for a zone that has not connected since the start, or whose replica is unreachable.", []string{"zone"}, nil)
	descLag       = prometheus.NewDesc("causeway_kds_lag_seconds",
		"Time for which the receiver has lacked changes, of the type that is furthest behind; 0 while it lacks none, no series while the sender is offline.", []string{"zone", "direction"}, nil)
	descRevisions = prometheus.NewDesc("causeway_kds_lag_revisions",
		"Revisions by which the receiver is behind, of the type that is furthest behind; no series while the sender is offline.", []string{"zone", "direction"}, nil)
	descTypeLag = prometheus.NewDesc("causeway_kds_type_lag_seconds",
		"Time for which the receiver has lacked changes of a type; no series while it lacks none. With ?detail=types only.", []string{"zone", "type", "direction"}, nil)
	descRefused = prometheus.NewDesc("causeway_kds_refused", "Resources that are currently refused.",
		[]string{"zone", "type", "direction"}, nil)
	descOver = prometheus.NewDesc("causeway_kds_over_limit",
		"How often the zone has exceeded a limit since it first met it; limit is resources, bytes, refusals, resume, streams, calls or changes.", []string{"zone", "limit", "type"}, nil)
	descHeld = prometheus.NewDesc("causeway_kds_held_deletions", "Deletions that this server holds for an operator; what the other side holds is among its metrics.",
		[]string{"zone", "type", "direction"}, nil)
	descNewStore = prometheus.NewDesc("causeway_kds_new_store",
		"1 while the global's store is not the known one, and the zone does not delete what that store lacks; on the global, as the zone last reported.",
		[]string{"zone"}, nil)
	descEncoded = prometheus.NewDesc("causeway_kds_encodings_total",
		"Resources that were encoded (miss) or reused in encoded form (hit).", []string{"result"}, nil)
)

// Describe implements prometheus.Collector.
func (StatusCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descConnected, descLag, descRevisions, descRefused, descHeld, descOver,
		descNewStore, descEncoded} {
		out <- d
	}
}

// Collect implements prometheus.Collector. Series by type exist only for types that have refusals or held deletions.
// All zones have one series for each direction, however many types there are.
func (c StatusCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, s := range c.Statuses() {
		connected := 0.0
		if s.Connected {
			connected = 1
		}
		if !s.Unheard {
			gauge(descConnected, connected, s.Zone)
			for direction, lag := range Furthest(s.Types) {
				gauge(descLag, lag.Seconds, s.Zone, direction)
				gauge(descRevisions, float64(lag.Revisions), s.Zone, direction)
			}
		}
		for _, o := range s.Over {
			gauge(descOver, float64(o.Count), s.Zone, o.Limit, string(o.Type))
		}
		if s.NewStore != nil {
			gauge(descNewStore, 1, s.Zone)
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

// Lag is how far behind a receiver is, in time and in revisions of the sender.
type Lag struct {
	Seconds   float64
	Revisions uint64
}

// Furthest returns, by direction, the lag of the types that are furthest behind, where it is known.
func Furthest(types []TypeSync) map[string]Lag {
	out := map[string]Lag{}
	for i := range types {
		t := &types[i]
		if t.LagUnknown {
			continue
		}
		was := out[t.Direction]
		out[t.Direction] = Lag{max(was.Seconds, t.LagSeconds), max(was.Revisions, t.LagRevisions)}
	}
	return out
}

// LagCollector exports, for a scrape with details, a series for each zone, type and direction that is behind.
type LagCollector struct{ Statuses func() []SyncStatus }

// Describe implements prometheus.Collector.
func (LagCollector) Describe(out chan<- *prometheus.Desc) { out <- descTypeLag }

// Collect implements prometheus.Collector.
func (c LagCollector) Collect(out chan<- prometheus.Metric) {
	for _, s := range c.Statuses() {
		for i := range s.Types {
			if t := &s.Types[i]; t.LagSeconds > 0 {
				out <- prometheus.MustNewConstMetric(descTypeLag, prometheus.GaugeValue, t.LagSeconds, s.Zone,
					string(t.Type), t.Direction)
			}
		}
	}
}
