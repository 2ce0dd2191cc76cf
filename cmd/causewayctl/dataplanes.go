package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
)

// dataplaneOverview is one item of `/dataplanes/_overview`.
type dataplaneOverview struct {
	Mesh      string        `json:"mesh"`
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Dataplane dataplaneSpec `json:"dataplane"`
	Insight   struct {
		Subscriptions []subscription `json:"subscriptions"`
	} `json:"dataplaneInsight"`
}

// printDataplanes prints Dataplanes together with the server's view of their proxies.
func (c *cli) printDataplanes(ctx context.Context, client *api.Client, dataplanes []*item, q listQuery) error {
	overviews, err := listAll[dataplaneOverview](ctx, client, listPath(q.descriptor, q.mesh)+overviewSuffix, q)
	if err != nil {
		return err
	}
	byKey := map[resources.Key]*dataplaneOverview{}
	for _, o := range overviews {
		byKey[resources.Key{Type: resources.TypeDataplane, Mesh: o.Mesh, Namespace: o.Namespace, Name: o.Name}] = o
	}
	return dataplaneTable(dataplanes, byKey, c.output == formatWide, time.Now()).print(c.out)
}

func dataplaneTable(dataplanes []*item, overviews map[resources.Key]*dataplaneOverview, wide bool, now time.Time) *table {
	t := &table{header: []string{"MESH", "NAMESPACE", "NAME", "ADDRESS", "INBOUNDS", "PROXY", "SINCE", "ORIGIN", "AGE"}}
	if wide {
		t.header = append(t.header, "DISPLAY NAME", "KRI", "LABELS")
	}
	for _, dp := range dataplanes {
		o := overviews[dp.key()]
		if o == nil { // it appeared or disappeared between the two requests
			o = &dataplaneOverview{}
		}
		state, since := connectionState(o.Insight.Subscriptions)
		row := []string{
			dp.Mesh, dp.Namespace, dp.Name, o.Dataplane.Networking.Address, inboundsText(o.Dataplane.Networking.Inbound),
			state, age(since, now), dp.origin(), age(dp.CreationTime, now),
		}
		if wide {
			row = append(row, dp.displayName(), dp.KRI, userLabels(dp.Labels))
		}
		t.add(row...)
	}
	return t
}

// inboundsText lists the port and protocol of each inbound: `8080/http,9090/tcp`.
func inboundsText(inbounds []inboundSpec) string {
	var parts []string
	for _, in := range inbounds {
		parts = append(parts, fmt.Sprintf("%d/%s", in.Port, in.protocol()))
	}
	return strings.Join(parts, ",")
}
