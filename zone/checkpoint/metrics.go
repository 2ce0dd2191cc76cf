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
			"Entries of what proxies were given before the start that cannot be read; it is given anew."),
		refused: counter("causeway_holdings_refused_total",
			"Entries of what proxies are given that are not kept, as there is no room."),
		failures: counter("causeway_holdings_write_failures_total", "Attempts to write what proxies were given that failed."),
	}
	if r != nil {
		r.MustRegister(m.unreadable, m.refused, m.failures, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "causeway_holdings_entries", Help: "Entries of what proxies were given that are kept for the next start.",
		}, entries), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "causeway_holdings_pending",
			Help: "Entries of what proxies are given that changed and are not on the disk yet.",
		}, pending))
	}
	return m
}
