package server

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/causeway-mesh/causeway/printing"
)

// printable makes metric labels printable. Some contain text that peers send.
type printable struct{ prometheus.Gatherer }

// Gather implements prometheus.Gatherer.
func (p printable) Gather() ([]*dto.MetricFamily, error) {
	families, err := p.Gatherer.Gather()
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if !printing.Safe(label.GetValue()) {
					shown := printing.Text(label.GetValue())
					label.Value = &shown
				}
			}
		}
	}
	return families, err
}
