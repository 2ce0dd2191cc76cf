package panics

import "github.com/prometheus/client_golang/prometheus"

// Collector returns c guarded. A registry calls its collectors in goroutines of its own, and part of what they report
// comes from peers.
func (g *Guard) Collector(serving string, c prometheus.Collector) prometheus.Collector {
	if g == nil {
		return c
	}
	return &collector{Collector: c, guard: g, serving: serving}
}

type collector struct {
	prometheus.Collector
	guard   *Guard
	serving string
}

// Collect implements prometheus.Collector. It reports what was collected before the panic.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	_ = c.guard.Do(c.serving, func() error { // the guard has logged the panic
		c.Collector.Collect(out)
		return nil
	})
}
