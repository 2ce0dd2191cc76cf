package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/resources"
)

// ingress is a ZoneIngress with its zone's information about its proxy.
type ingress struct {
	zone, name string
	// connected is the condition, or nil if the server does not know it.
	connected *resources.Condition
}

// ingresses checks whether the proxies of the zone's ingresses are connected. A global does not know.
func (e *examination) ingresses(ctx context.Context) {
	d, _ := resources.Lookup(resources.TypeZoneIngress)
	items, err := listItems(ctx, e.client, listQuery{descriptor: d})
	if err != nil {
		e.unknown("ingress", "", err, "use a credential that may read them: causewayctl auth can-i read ZoneIngress")
		return
	}
	var all []ingress
	for _, it := range items {
		if zone := it.Labels[resources.LabelZone]; e.home == "" || zone == e.home {
			all = append(all, ingress{zone, it.Name, connectedCondition(it)})
		}
	}
	e.add(ingressFindings(all)...)
}

// connectedCondition returns the condition of a ZoneIngress about the connection of its proxy, or nil.
func connectedCondition(it *item) *resources.Condition {
	all, err := conditionsOf(it)
	at := slices.IndexFunc(all, func(c resources.Condition) bool { return c.Type == resources.ConditionConnected })
	if err != nil || at < 0 {
		return nil
	}
	return &all[at]
}

func ingressFindings(all []ingress) (out []finding) {
	var unknown []string
	for _, one := range all {
		switch about := printing.Line(one.name); {
		case one.connected == nil:
			unknown = append(unknown, one.name+" of "+one.zone)
		case one.connected.Status == resources.ConditionUnknown:
			out = append(out, finding{findingUnknown, "ingress", about, one.connected.Message, "", "run this again in a minute"})
		case one.connected.Status == resources.ConditionTrue:
			out = append(out, finding{Status: findingOK, Check: "ingress", About: about, What: one.connected.Message})
		default:
			out = append(out, finding{
				findingProblem, "ingress", about, one.connected.Message,
				"other zones reach the services of this zone through it; an Envoy that runs keeps its last configuration, one that does not run accepts no connections",
				"start its proxy (causeway-zone bootstrap --zone-ingress), check that it reaches the zone's --xds-address, or delete the ZoneIngress",
			})
		}
	}
	if len(unknown) > 0 {
		out = append(out, finding{
			findingUnknown, "ingress", "", fmt.Sprintf("only their zones know whether a proxy is connected for %s", firstOf(unknown, 5)),
			"other zones reach a zone's services through it", "ask the zones: causewayctl doctor --address ZONE",
		})
	}
	return out
}
