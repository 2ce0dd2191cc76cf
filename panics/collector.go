package panics

import "github.com/prometheus/client_golang/prometheus"

// Collector returns c guarded: a registry asks its collectors in goroutines of its own, and what they show is in part what peers said.
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

// Collect implements prometheus.Collector. What was collected before the panic is shown.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	_ = c.guard.Do(c.serving, func() error { // it is told where it is caught
		c.Collector.Collect(out)
		return nil
	})
}
