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
		e.add(discoveryProblem(s.typ, s.value))
	}
	return healthy
}

// discoveryProblem returns the finding about so many pods and Services with a problem, by its reason.
func discoveryProblem(reason, count string) finding {
	events := "kubectl get events -A --field-selector reason=" + reason
	switch reason {
	case "NoAddress":
		return finding{
			findingProblem, "kubernetes", reason, "pods of the zone ingress without an address: " + count,
			"other zones do not reach services of this one by them", "give their Service an address (ingress.service.type, or ingress.address, of the chart): " + events,
		}
	case "OtherCA":
		return finding{
			findingProblem, "kubernetes", reason, "pods whose proxies trust another CA than this zone's: " + count,
			"the zone has lost its data; these proxies keep their last configuration, do not connect again, and calls between them and newer ones fail",
			"restart what they belong to (kubectl rollout restart), and keep the zone's data in a volume: " + events,
		}
	}
	return finding{
		findingWarning, "kubernetes", reason, "pods and Services not in the mesh as written: " + count,
		"callers do not reach them, or not by all ports", events,
	}
}
