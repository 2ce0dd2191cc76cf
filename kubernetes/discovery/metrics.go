package discovery

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	followedDesc = prometheus.NewDesc("causeway_discovery_followed",
		"1 while the Kubernetes API server is followed for the kind (Pod, Service, Node, Namespace); 0 while it is not, and the mesh continues with the last known state.",
		[]string{"kind"}, nil)
	behindDesc = prometheus.NewDesc("causeway_discovery_behind_seconds",
		"How long the Kubernetes API server has not been followed for the kind; 0 while it is.", []string{"kind"}, nil)
	objectsDesc = prometheus.NewDesc("causeway_discovery_objects",
		"Objects of the kind that discovery knows; of pods, those with a proxy.", []string{"kind"}, nil)
	heldDesc = prometheus.NewDesc("causeway_discovery_held_objects",
		"Objects of the kind that a list has omitted together with most others, and that stay in the mesh until the Kubernetes API server confirms that each is gone.",
		[]string{"kind"}, nil)
	problemsDesc = prometheus.NewDesc("causeway_discovery_problems",
		"Pods and Services that are not in the mesh as their authors may expect, by the reason of their Event.",
		[]string{"reason"}, nil)
)

// Describe implements prometheus.Collector.
func (d *Controller) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{followedDesc, behindDesc, objectsDesc, heldDesc, problemsDesc} {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (d *Controller) Collect(out chan<- prometheus.Metric) {
	d.mu.Lock()
	defer d.mu.Unlock()
	gauge := func(desc *prometheus.Desc, value float64, label string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, label)
	}
	for _, f := range d.kinds {
		followed, behind, held := 1.0, 0.0, 0
		if !f.listed || f.failed {
			followed, behind = 0, time.Since(f.since).Seconds()
		}
		for _, names := range f.held {
			held += len(names)
		}
		gauge(followedDesc, followed, f.kind.Name)
		gauge(behindDesc, behind, f.kind.Name)
		gauge(objectsDesc, float64(len(f.known())), f.kind.Name)
		gauge(heldDesc, float64(held), f.kind.Name)
	}
	problems := map[string]int{}
	for _, reasons := range d.reasons {
		for _, reason := range reasons {
			problems[reason]++
		}
	}
	for reason, n := range problems {
		gauge(problemsDesc, float64(n), reason)
	}
}
