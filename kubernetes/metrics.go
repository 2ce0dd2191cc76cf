package kubernetes

import "github.com/prometheus/client_golang/prometheus"

var (
	followedDesc = prometheus.NewDesc("causeway_kubernetes_followed",
		"1 while the Kubernetes API server is followed for objects of the type; 0 while it is not: what it holds now is unknown.",
		[]string{"type"}, nil)
	objectsDesc = prometheus.NewDesc("causeway_kubernetes_objects",
		"Objects of users in the Kubernetes cluster that the server knows.", []string{"type"}, nil)
	refusedDesc = prometheus.NewDesc("causeway_kubernetes_refused_objects",
		"Objects that are not in the store as they are written, because they are not valid. Their condition Accepted says why.",
		[]string{"type"}, nil)
	heldDesc = prometheus.NewDesc("causeway_kubernetes_held_deletions",
		"Resources that the store keeps although their objects are gone, until an operator accepts it: kubectl annotate crd NAME causeway.io/accept-deletions=REASON.",
		[]string{"type"}, nil)
	differsDesc = prometheus.NewDesc("causeway_kubernetes_definition_differs",
		"1 while the CustomResourceDefinition of the type is of another version than the server: causewayctl install crds prints the server's.",
		[]string{"type"}, nil)
	copiesDesc = prometheus.NewDesc("causeway_kubernetes_copies_pending",
		"Resources of other authors whose copies in the Kubernetes cluster wait to be compared.", nil, nil)
)

// Describe implements prometheus.Collector.
func (b *Bridge) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{followedDesc, objectsDesc, refusedDesc, heldDesc, differsDesc, copiesDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector. A type without objects, refusals or held deletions has no series of them.
func (b *Bridge) Collect(out chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	for t, k := range b.kinds {
		followed, objects, refused := 0, 0, 0
		if k.listed && k.failed == nil {
			followed = 1
		}
		for _, o := range k.objects {
			if o.copy {
				continue
			}
			objects++
			if o.refused != nil {
				refused++
			}
		}
		gauge(followedDesc, followed, string(t))
		if k.differs {
			gauge(differsDesc, 1, string(t))
		}
		for d, n := range map[*prometheus.Desc]int{objectsDesc: objects, refusedDesc: refused, heldDesc: len(k.held)} {
			if n > 0 {
				gauge(d, n, string(t))
			}
		}
	}
	gauge(copiesDesc, len(b.unprojected))
}
