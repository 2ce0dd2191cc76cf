package checkpoint

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	unreadable, refused, failures prometheus.Counter
}

func newMetrics(r prometheus.Registerer, entries, pending func() float64) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		unreadable: counter("causeway_holdings_unreadable_total",
			"Stored entries of issued identities that cannot be read; proxies get new ones."),
		refused: counter("causeway_holdings_refused_total",
			"Entries of issued identities that are not stored, for lack of room."),
		failures: counter("causeway_holdings_write_failures_total", "Failed attempts to store issued identities."),
	}
	if r != nil {
		r.MustRegister(m.unreadable, m.refused, m.failures, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "causeway_holdings_entries", Help: "Entries of issued identities that are stored for the next start.",
		}, entries), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "causeway_holdings_pending",
			Help: "Entries of issued identities that changed and are not stored yet.",
		}, pending))
	}
	return m
}
