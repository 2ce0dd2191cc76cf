package xds

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	proxies, streams         prometheus.Gauge
	builds, failures, issued prometheus.Counter
	responses, acks, nacks   *prometheus.CounterVec
	kept, over               *prometheus.CounterVec
	propagation              prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	byType := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"type"})
	}
	m := &metrics{
		proxies: prometheus.NewGauge(prometheus.GaugeOpts{Name: "causeway_xds_proxies",
			Help: "Proxies that are connected."}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{Name: "causeway_xds_streams", Help: "ADS streams that are open."}),
		builds:  counter("causeway_xds_builds_total", "Configs built for a proxy."),
		failures: counter("causeway_xds_build_failures_total",
			"Configs that could not be built; the proxy keeps its last one."),
		issued: counter("causeway_identity_issued_total", "Identities issued to proxies."),
		kept: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "causeway_identity_kept_total", Help: "Stored identities of reconnecting proxies by result: used, or not used because they are unreadable, of an other-identity, by an other-authority, or due for renewal.",
		}, []string{"outcome"}),
		over: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "causeway_xds_over_limit_total",
			Help: "Requests of proxies beyond a limit: streams, names, types that are not served, or requests per second (those wait).",
		}, []string{"limit"}),
		responses: byType("causeway_xds_responses_total", "Responses sent to proxies."),
		acks:      byType("causeway_xds_acks_total", "Responses that proxies acknowledged."),
		nacks:     byType("causeway_xds_nacks_total", "Responses that proxies refused."),
		propagation: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "causeway_xds_propagation_seconds",
			Help:    "Time from a write on any server to its acknowledgement by a proxy.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60, 600},
		}),
	}
	if r != nil {
		r.MustRegister(m.proxies, m.streams, m.builds, m.failures, m.issued, m.kept, m.over, m.responses, m.acks,
			m.nacks, m.propagation)
	}
	return m
}
