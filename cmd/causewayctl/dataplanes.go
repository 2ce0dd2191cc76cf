package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// connection returns the state of the proxy's connection, since when, and why it is unknown.
func (o *dataplaneOverview) connection() connectionView {
	switch {
	case o.LeftOut > 0:
		return connectionView{State: stateHidden}
	case o.Unknown != nil:
		return connectionView{State: stateUnknown, Since: o.Unknown.Since, Reason: o.Unknown.Reason}
	}
	state, since := connectionState(o.Insight.Message.GetSubscriptions())
	return connectionView{State: state, Since: since}
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
	if err := dataplaneTable(dataplanes, byKey, c.output == formatWide, time.Now()).print(c.out); err != nil {
		return err
	}
	return writeUnknown(c.out, dataplanes, byKey)
}

// writeUnknown writes below a table why the state of some proxies is unknown.
func writeUnknown(w io.Writer, dataplanes []*item, overviews map[resources.Key]*dataplaneOverview) error {
	counts := map[string]int{}
	for _, dp := range dataplanes {
		if o := overviews[dp.key()]; o != nil && o.connection().Reason != "" {
			counts[o.connection().reason()]++
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		if _, err := fmt.Fprintf(w, "unknown for %d: %s\n", counts[reason], reason); err != nil {
			return err
		}
	}
	return nil
}

func dataplaneTable(dataplanes []*item, overviews map[resources.Key]*dataplaneOverview, wide bool,
	now time.Time) *table {
	t := &table{header: []string{"MESH", "NAMESPACE", "NAME", "ADDRESS", "INBOUNDS", "PROXY", "SINCE", "ORIGIN", "AGE"}}
	if wide {
		t.header = append(t.header, "DISPLAY NAME", "KRI", "LABELS")
	}
	for _, dp := range dataplanes {
		o := overviews[dp.key()]
		if o == nil { // it appeared or disappeared between the two requests
			o = &dataplaneOverview{}
		}
		proxy, networking := o.connection(), o.Dataplane.Message.GetNetworking()
		row := []string{
			dp.Mesh, dp.Namespace, dp.Name, networking.GetAddress(), inboundsText(networking.GetInbound()),
			proxy.State, age(proxy.Since, now), dp.origin(), age(dp.CreationTime, now),
		}
		if wide {
			row = append(row, dp.displayName(), dp.KRI, userLabels(dp.Labels))
		}
		t.add(row...)
	}
	return t
}

// inboundsText lists the port and protocol of each inbound: `8080/http,9090/tcp`.
func inboundsText(inbounds []*inboundSpec) string {
	var parts []string
	for _, in := range inbounds {
		parts = append(parts, fmt.Sprintf("%d/%s", in.GetPort(), protocolOf(in)))
	}
	return strings.Join(parts, ",")
}
