package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/api"
)

// kubernetes reports problems between the server and the cluster in which its users write, if it has one.
func (e *examination) kubernetes(ctx context.Context, client *api.Client) {
	answer, err := client.Do(ctx, api.Request{Path: "/metrics"})
	if err != nil {
		return // the check of panics reports it
	}
	e.add(replicaFindings(string(answer))...)
	followed := seriesOf(string(answer), "causeway_kubernetes_followed")
	if len(followed) == 0 {
		return
	}
	var away []string
	for _, s := range followed {
		if s.value == "0" {
			away = append(away, s.typ)
		}
	}
	healthy := true
	if len(away) > 0 {
		healthy = false
		e.add(finding{
			findingProblem, "kubernetes", strings.Join(shortList(away), ", "), "the API server is not followed for this",
			"what users write there has no effect until it is; the server continues with its last state",
			"see the server's log for the reason: the API server is away, the server lacks a right, or the CustomResourceDefinition is gone (causewayctl install crds)",
		})
	}
	for _, s := range seriesOf(string(answer), "causeway_kubernetes_held_deletions") {
		healthy = false
		e.add(finding{
			findingProblem, "kubernetes", s.typ, "deletions held: " + s.value,
			"their objects are gone, but not because users deleted them one by one: with their CustomResourceDefinition, most of a kind at once, or while something uses them; the mesh keeps what they said",
			"apply the objects again; or let the deletions happen: kubectl annotate crd NAME causeway.io/accept-deletions=REASON",
		})
	}
	for _, s := range seriesOf(string(answer), "causeway_kubernetes_refused_objects") {
		healthy = false
		e.add(finding{
			findingWarning, "kubernetes", s.typ, "objects that are not valid: " + s.value,
			"they were written while the webhook was away, or before it was there; the last valid generation of each stays in force",
			"kubectl get them: the condition Accepted says what is wrong",
		})
	}
	var others []string
	for _, s := range seriesOf(string(answer), "causeway_kubernetes_definition_differs") {
		others = append(others, s.typ)
	}
	if len(others) > 0 {
		healthy = false
		e.add(finding{
			findingWarning, "kubernetes", strings.Join(shortList(others), ", "), "the CustomResourceDefinitions are of another version than the server",
			"kubectl may refuse fields that the server has, or explain fields that it does not have; all objects and what they say stay",
			"install those of the newest server: helm upgrade causeway-crds, or its causewayctl install crds | kubectl apply --server-side -f -",
		})
	}
	if e.discovery(string(answer)) && healthy {
		e.note("kubernetes", "", "users write in a cluster; %d types are followed", len(followed))
	}
}

// replicaFindings says which replica leads, and whether another one could, if a Lease in Kubernetes chooses the leader.
func replicaFindings(metrics string) []finding {
	ready := map[string]bool{}
	for _, s := range seriesOf(metrics, "causeway_replica_ready") {
		ready[s.typ] = s.value == "1"
	}
	leads, waits, said := "", 0, []string{}
	for _, s := range seriesOf(metrics, "causeway_replica_leads") {
		switch {
		case s.value == "1":
			leads = s.typ
		case ready[s.typ]:
			waits++
			said = append(said, s.typ+" waits")
		default:
			said = append(said, s.typ+" is not ready")
		}
	}
	if leads == "" {
		return nil
	}
	f := finding{Status: findingOK, Check: "replicas", What: strings.Join(append([]string{leads + " leads"}, said...), ", ")}
	if waits == 0 {
		f.Status = findingWarning
		f.Why = "when it dies, nothing is served until Kubernetes has started it again"
		f.Do = "see why no other pod is ready: kubectl get pods, kubectl describe pod; a pod that was just replaced is seen within 15 s"
	}
	return []finding{f}
}

// shortList returns the first few items of a list.
func shortList(list []string) []string {
	slices.Sort(list)
	if more := len(list) - 3; more > 0 {
		return append(list[:3:3], fmt.Sprintf("and %d more", more))
	}
	return list
}

// series is one line of a metric with one label, such as a type.
type series struct{ typ, value string }

// seriesOf returns the lines of a metric.
func seriesOf(metrics, name string) (out []series) {
	lines := bufio.NewScanner(strings.NewReader(metrics))
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name+"{")
		_, rest, labelled := strings.Cut(rest, `="`)
		if !ok || !labelled {
			continue
		}
		if typ, value, ok := strings.Cut(rest, `"} `); ok {
			out = append(out, series{typ, value})
		}
	}
	return out
}
