package main

import (
	"context"
	"fmt"

	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/resources"
)

// mostGateways limits the MeshGateways that doctor checks.
const mostGateways = 50

// gateways checks whether proxies serve every part of each MeshGateway.
func (e *examination) gateways(ctx context.Context) {
	d, _ := resources.Lookup(resources.TypeMeshGateway)
	items, err := listItems(ctx, e.client, listQuery{descriptor: d})
	if err != nil {
		e.unknown("gateways", "", err, "use a credential that may read them: causewayctl auth can-i read MeshGateway")
		return
	}
	served := 0
	for _, it := range items[:min(len(items), mostGateways)] {
		about := printing.Line(it.Name)
		status, err := fetchRollout(ctx, e.client, it.key())
		switch {
		case err != nil:
			e.unknown("gateways", about, err, "")
		case status.complete():
			served++
		default:
			e.add(finding{findingWarning, "gateways", about, status.sentence(),
				"clients outside of the mesh may not reach what it says, or reach what it said before",
				"causewayctl get meshgateway NAME -o yaml shows what is wrong with it, causewayctl inspect dataplane NAME what is with its proxy"})
		}
	}
	if served > 0 {
		e.note("gateways", "", "%d of %d are served by all of their proxies", served, len(items))
	}
	if more := len(items) - mostGateways; more > 0 {
		e.unknown("gateways", "", fmt.Errorf("%d more were not looked at", more), "causewayctl rollout status meshgateway NAME")
	}
}
