package store

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of a durable store, the same for each kind of store.
type Metrics struct {
	registerer prometheus.Registerer
	registered []prometheus.Collector

	duration *prometheus.HistogramVec
	batches  prometheus.Histogram
	failures prometheus.Counter
}

// NewMetrics registers the metrics of the store that view belongs to. With a nil registerer it registers nothing.
// Errors are the registerer's.
func NewMetrics(registerer prometheus.Registerer, view *View) (*Metrics, error) {
	m := &Metrics{
		registerer: registerer,
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "causeway_store_apply_duration_seconds",
			Help:    "Time from a writer's call until its batch was durable or refused, by result (ok, refused, unavailable).",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 18),
		}, []string{"result"}),
		batches: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "causeway_store_group_batches",
			Help:    "Batches that were made durable by one write.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "causeway_store_write_failures_total",
			Help: "Writes that failed.",
		}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.duration, m.batches, m.failures, viewCollector{view}} {
		if err := registerer.Register(c); err != nil {
			m.Unregister()
			return nil, err
		}
		m.registered = append(m.registered, c)
	}
	return m, nil
}

// Unregister removes the metrics from the registerer.
func (m *Metrics) Unregister() {
	for _, c := range m.registered {
		m.registerer.Unregister(c)
	}
}

// Applied records how long a writer waited, and the result.
func (m *Metrics) Applied(d time.Duration, err error) {
	result := "ok"
	switch {
	case errors.Is(err, ErrUnavailable):
		result = "unavailable"
	case err != nil:
		result = "refused"
	}
	m.duration.WithLabelValues(result).Observe(d.Seconds())
}

// Group records how many batches one write made durable.
func (m *Metrics) Group(batches int) { m.batches.Observe(float64(batches)) }

// Failed counts a failed write.
func (m *Metrics) Failed() { m.failures.Inc() }

// viewCollector reads the view's figures at each scrape.
type viewCollector struct{ view *View }

func (viewCollector) descs() (revision, window, byType *prometheus.Desc) {
	return prometheus.NewDesc("causeway_store_revision", "Revision of the last commit that this server has seen.", nil, nil),
		prometheus.NewDesc("causeway_store_changelog_commits", "Commits in the changelog's window.", nil, nil),
		prometheus.NewDesc("causeway_store_resources", "Resources in the store, by type, without insights, which are in memory.", []string{"type"}, nil)
}

// Describe implements prometheus.Collector.
func (c viewCollector) Describe(out chan<- *prometheus.Desc) {
	revision, window, byType := c.descs()
	out <- revision
	out <- window
	out <- byType
}

// Collect implements prometheus.Collector. It omits live types without resources in the store, because theirs may be in
// memory.
func (c viewCollector) Collect(out chan<- prometheus.Metric) {
	revision, window, byType := c.descs()
	stats := c.view.Stats()
	out <- prometheus.MustNewConstMetric(revision, prometheus.GaugeValue, float64(stats.Revision))
	out <- prometheus.MustNewConstMetric(window, prometheus.GaugeValue, float64(stats.WindowCommits))
	for t, n := range stats.ByType {
		if n == 0 && t.Live() {
			continue
		}
		out <- prometheus.MustNewConstMetric(byType, prometheus.GaugeValue, float64(n), string(t))
	}
}
