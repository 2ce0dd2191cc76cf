package server

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Expiries returns when certificates expire, by name. It must be quick and safe for concurrent use.
type Expiries func() map[string]time.Time

var (
	descReady = prometheus.NewDesc("causeway_ready",
		"1 while the readiness check passes; the check start fails until the server serves.", []string{"check"}, nil)
	descExpires = prometheus.NewDesc("causeway_certificate_expiry_timestamp_seconds",
		"Expiry of a certificate that this server uses.", []string{"certificate"}, nil)
)

// startCheck is the check that SetStarting makes fail.
const startCheck = "start"

// AddExpiries adds the expiry times of certificates to the metrics.
func (d *Diagnostics) AddExpiries(e Expiries) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expiries = append(d.expiries, e)
}

// Describe implements prometheus.Collector.
func (*Diagnostics) Describe(out chan<- *prometheus.Desc) {
	out <- descReady
	out <- descExpires
}

// Collect implements prometheus.Collector.
func (d *Diagnostics) Collect(out chan<- prometheus.Metric) {
	d.mu.Lock()
	checks, expiries, starting := slices.Clone(d.checks), slices.Clone(d.expiries), d.starting
	d.mu.Unlock()
	checks = append(checks, check{name: startCheck, fn: func() error { return starting }})
	for _, c := range checks {
		passes := 1.0
		if c.fn() != nil {
			passes = 0
		}
		out <- prometheus.MustNewConstMetric(descReady, prometheus.GaugeValue, passes, c.name)
	}
	for _, e := range expiries {
		for name, end := range e() {
			out <- prometheus.MustNewConstMetric(descExpires, prometheus.GaugeValue, float64(end.Unix()), name)
		}
	}
}
