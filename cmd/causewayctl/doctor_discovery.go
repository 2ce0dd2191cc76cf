package main

import (
	"fmt"
	"strconv"
	"time"
)

// discovery reports problems between a zone and the pods and Services of its cluster, and whether there were none.
func (e *examination) discovery(metrics string) (healthy bool) {
	healthy = true
	for _, s := range seriesOf(metrics, "causeway_discovery_behind_seconds") {
		seconds, err := strconv.ParseFloat(s.value, 64)
		if err != nil || seconds == 0 {
			continue
		}
		healthy = false
		e.add(finding{
			findingProblem, "kubernetes", s.typ, fmt.Sprintf("not followed for %s", time.Duration(seconds*float64(time.Second)).Round(time.Second)),
			"the mesh continues with the last known state of these objects, without later ones",
			"see the server's log for the reason: the API server is away, or the ClusterRole of the chart is older than the server",
		})
	}
	for _, s := range seriesOf(metrics, "causeway_discovery_held_objects") {
		if s.value == "0" {
			continue
		}
		healthy = false
		e.add(finding{
			findingProblem, "kubernetes", s.typ, "left out of a list and kept: " + s.value,
			"the API server listed less than half of what was there, and nothing in its place; what is missing stays in the mesh until the API server says of each that it is gone",
			"if this does not end by itself, see the server's log: the API server is another one, has lost its data, or lets the server not get these objects",
		})
	}
	for _, s := range seriesOf(metrics, "causeway_discovery_problems") {
		healthy = false
		e.add(finding{
			findingWarning, "kubernetes", s.typ, "pods and Services not in the mesh as written: " + s.value,
			"callers do not reach them, or not by all ports",
			"kubectl get events -A --field-selector reason=" + s.typ,
		})
	}
	return healthy
}
