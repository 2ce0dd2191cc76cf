package main

import (
	"context"
	"slices"

	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/resources"
)

// egress checks whether services outside the mesh have the egress that their mesh requires. Only a zone knows. A
// service without the condition needs none.
func (e *examination) egress(ctx context.Context) {
	d, _ := resources.Lookup(resources.TypeMeshExternalService)
	items, err := listItems(ctx, e.client, listQuery{descriptor: d})
	if err != nil {
		e.unknown("egress", "", err, "use a credential that may read them: causewayctl auth can-i read MeshExternalService")
		return
	}
	told := map[string]bool{}
	for _, it := range items {
		all, err := conditionsOf(it)
		at := slices.IndexFunc(all, func(c resources.Condition) bool { return c.Type == resources.ConditionEgress })
		if err != nil || at < 0 || told[it.Mesh] {
			continue
		}
		told[it.Mesh] = true
		about := "mesh " + printing.Line(it.Mesh)
		switch all[at].Status {
		case resources.ConditionTrue:
			e.add(finding{Status: findingOK, Check: "egress", About: about, What: all[at].Message})
			continue
		case resources.ConditionUnknown:
			e.add(finding{findingUnknown, "egress", about, all[at].Message, "", "run this again in a minute"})
			continue
		}
		e.add(finding{findingProblem, "egress", about, all[at].Message,
			"requests to services outside the mesh are answered with 503 until there is one",
			"start an egress, or take routing.zoneEgress out of the Mesh"})
	}
}
