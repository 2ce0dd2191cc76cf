package main

import (
	"context"
	"fmt"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

// proxies checks for proxies that are not connected or have not acknowledged their configuration.
func (e *examination) proxies(ctx context.Context) {
	meshes, err := e.meshes(ctx)
	if err != nil {
		e.unknown("proxies", "", err, "use a credential that may read the meshes: causewayctl auth can-i read Mesh")
		return
	}
	for _, mesh := range meshes {
		e.proxiesOf(ctx, mesh)
	}
}

func (e *examination) proxiesOf(ctx context.Context, mesh string) {
	d, _ := resources.Lookup(resources.TypeDataplane)
	overviews, err := listAll[dataplaneOverview](ctx, e.client, listPath(d, mesh)+overviewSuffix,
		listQuery{descriptor: d, mesh: mesh})
	if err != nil {
		e.unknown("proxies", "mesh "+mesh, err, "")
		return
	}
	found := proxyFindings(mesh, overviews)
	status, err := fetchRollout(ctx, e.client, resources.Key{Type: resources.TypeMesh, Name: mesh})
	if err != nil {
		e.unknown("proxies", "mesh "+mesh, err, "")
	} else {
		found = append(found, behindFindings(mesh, status.Proxies.Behind)...)
		found = append(found, unknownFindings(mesh, status)...)
	}
	switch {
	case len(found) > 0 || err != nil:
	case len(overviews) == 0:
		e.note("proxies", "mesh "+mesh, "none")
	default:
		e.note("proxies", "mesh "+mesh, "%d, all connected and %s", len(overviews), e.pace(status))
	}
	e.add(found...)
}

// pace says how far proxies are that lack nothing of what their zone has.
func (e *examination) pace(status *rolloutStatus) string {
	const ofTheirZone = "not behind their zone; "
	switch {
	case len(e.late) > 0:
		return ofTheirZone + "newer changes are not in force in " + firstOf(e.late, 3)
	case e.unread || status.Source != nil:
		return ofTheirZone + "whether there are newer changes is unknown"
	}
	return "in sync"
}

// proxyFindings counts the Dataplanes whose proxy is not connected, among those that the caller may read.
// unknownFindings covers those whose state is unknown.
func proxyFindings(mesh string, overviews []*dataplaneOverview) []finding {
	var away, hidden []string
	for _, o := range overviews {
		name := place(resources.Key{Mesh: o.Mesh, Namespace: o.Namespace, Name: o.Name})
		switch o.connection().State {
		case stateOnline, stateUnknown:
		case stateHidden:
			hidden = append(hidden, name)
		default:
			away = append(away, name)
		}
	}
	var out []finding
	if len(away) > 0 {
		out = append(out, finding{
			findingWarning, "proxies", "mesh " + mesh, fmt.Sprintf("%d of %d Dataplanes have no connected proxy: %s",
				len(away), len(overviews), firstOf(away, 5)),
			"an Envoy that runs keeps its last configuration and gets no changes; one that does not run serves nobody",
			"start the proxy (causeway-zone bootstrap), check that it reaches the zone's --xds-address, or delete the Dataplane; programs without a proxy need none",
		})
	}
	if len(hidden) > 0 {
		out = append(out, finding{
			findingWarning, "proxies", "mesh " + mesh,
			fmt.Sprintf("it is unknown whether %d of %d Dataplanes have a connected proxy: you may not read their DataplaneInsights: %s", len(hidden), len(overviews), firstOf(hidden, 5)),
			"a proxy that is not connected gets no changes",
			"use a credential that may read them: causewayctl auth can-i read DataplaneInsight",
		})
	}
	return out
}

// behindFindings separates proxies that fail from proxies that are only late.
func behindFindings(mesh string, behind []tracker.ProxyBehind) []finding {
	var failing, late []string
	for _, p := range behind {
		if p.Reason != "" {
			failing = append(failing, behindText(p))
		} else {
			late = append(late, behindText(p))
		}
	}
	var out []finding
	if len(failing) > 0 {
		out = append(out, finding{
			findingProblem, "proxies", "mesh " + mesh, fmt.Sprintf(
				"%d refuse their configuration, do not answer, or it cannot be built: %s", len(failing), firstOf(failing, 3)),
			"they keep their last configuration: later changes, including permissions, do not take effect there",
			"the reason names what is wrong, and the proxy's own log has the details: correct the policy (causewayctl inspect dataplane NAME lists its policies); restart a proxy that does not answer",
		})
	}
	if len(late) > 0 {
		out = append(out, finding{
			findingWarning, "proxies", "mesh " + mesh, fmt.Sprintf("%d have not acknowledged everything yet: %s",
				len(late), firstOf(late, 5)),
			"the newest changes do not take effect there yet", "run this again in a few seconds; a proxy that remains hangs",
		})
	}
	return out
}

// unknownFindings counts the proxies whose enforced configuration the server does not know. proxyFindings already
// covers proxies that are merely not connected.
func unknownFindings(mesh string, status *rolloutStatus) []finding {
	unknown := status.Proxies.Unknown
	if len(unknown) == 0 {
		return nil
	}
	return []finding{{
		findingWarning, "proxies", "mesh " + mesh, fmt.Sprintf("what %d of %d enforce is unknown: %s",
			len(unknown), status.Proxies.Total, firstOf(textsOf(unknown, unknownText), 3)),
		"a proxy that runs keeps what it had: changes, including revoked access, may not take effect there",
		"reconnect the zone, or start the proxy; delete Dataplanes that no longer run: causewayctl delete dataplane NAME",
	}}
}
