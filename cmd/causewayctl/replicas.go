package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/printing"
)

// replicaNames returns the words for replicas in get. Replicas are not resources.
func replicaNames() []string { return []string{"replicas", "replica"} }

// storeState describes in a few words the state of a replica's store.
func storeState(s *api.ReplicaStore) string {
	switch {
	case s.Reachable == nil:
		return s.Kind + " unknown"
	case !*s.Reachable:
		return s.Kind + " away"
	case s.Writable != nil && !*s.Writable:
		return s.Kind + " takes no writes"
	default:
		return s.Kind
	}
}

// getReplicas shows the replicas of the responding server: all, or the named one.
func (c *cli) getReplicas(ctx context.Context, client *api.Client, args []string) error {
	const path = "/_replicas"
	raw, err := client.Do(ctx, api.Request{Path: path})
	if api.IsNotFound(err) {
		return askGlobal("the replicas")
	} else if err != nil {
		return err
	}
	var list api.ReplicaList
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("%s: unexpected response: %w", path, err)
	}
	if len(args) > 1 {
		var names []string
		for _, r := range list.Items {
			names = append(names, r.Instance)
		}
		list.Items = slices.DeleteFunc(list.Items, func(r api.Replica) bool { return r.Instance != args[1] })
		if len(list.Items) == 0 {
			return &advised{api.NotFound("replica " + args[1]), "here are " + strings.Join(names, ", ")}
		}
	}
	if list.Unknown != "" {
		fmt.Fprintf(c.errOut, "warning: %s\n", printing.Line(list.Unknown))
	}
	return c.printAnswer(list,
		func() error { return replicaTable(list.Items, c.output == formatWide, time.Now()).print(c.out) })
}

// waitsText describes a replica that does not lead.
func waitsText(ready bool) string {
	if ready {
		return "waits"
	}
	return "not ready"
}

// sayLeader prints, below a table, which replica leads, if a Lease in Kubernetes chooses it. Of other globals, and to
// those who may not know, it says nothing.
func (c *cli) sayLeader(ctx context.Context, client *api.Client) {
	var list api.ReplicaList
	if err := client.JSON(ctx, api.Request{Path: "/_replicas"}, &list); err != nil {
		return
	}
	var said []string
	for i := range list.Items {
		switch r := &list.Items[i]; {
		case r.Lease == "":
		case r.Leads:
			said = append(said, r.Instance+" leads")
		default:
			said = append(said, r.Instance+" "+strings.Replace(waitsText(r.Ready), "not", "is not", 1))
		}
	}
	if list.Unknown != "" {
		said = append(said, list.Unknown)
	}
	if len(said) > 0 {
		fmt.Fprintf(c.errOut, "replicas: %s\n", printing.Line(strings.Join(said, ", ")))
	}
}

// replicaSince says since when a replica with a Lease leads, or is ready or not.
func replicaSince(r *api.Replica) string {
	switch {
	case r.Lease == "":
		return ""
	case r.Since == nil:
		return stateUnknown
	}
	return r.Since.UTC().Format(time.RFC3339)
}

func replicaTable(replicas []api.Replica, wide bool, now time.Time) *table {
	t := &table{header: []string{"INSTANCE", "VERSION", "AGE", "ZONES", "REVISION", "LEADS", "STORE"}}
	if wide {
		t.header = append(t.header, "ADDRESSES", "STARTED", "ASKED", "SINCE", "ERROR")
	}
	yes := map[bool]string{true: "yes", false: "no"}
	for i := range replicas {
		r := &replicas[i]
		row := []string{r.Instance, r.Version, age(r.Started, now), strconv.Itoa(r.Zones),
			strconv.FormatUint(r.Revision, 10), yes[r.Leads], storeState(&r.Store)}
		if r.Lease != "" && !r.Leads {
			row[1], row[3], row[4], row[6] = "", "", "", waitsText(r.Ready)
		}
		if r.Unheard != nil { // it is unknown whether it is there
			row[3], row[4], row[5] = stateUnknown, stateUnknown, stateUnknown
		}
		if wide {
			problem := r.Store.Error
			if r.Unheard != nil {
				problem = "not heard of since " + r.Unheard.UTC().Format(time.RFC3339) + ": " + r.WhyUnheard
			}
			row = append(row, strings.Join(r.Addresses, ","), r.Started.Format(time.RFC3339), yes[r.Asked], replicaSince(r), problem)
		}
		t.add(row...)
	}
	return t
}
