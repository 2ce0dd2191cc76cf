package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/resources/api"
)

// replicaNames are what get calls the replicas of a global, which are no resources.
func replicaNames() []string { return []string{"replicas", "replica"} }

// replicaList is the answer to `_replicas`.
type replicaList struct {
	Items []replicaItem `json:"items"`
}

// replicaItem is one replica.
type replicaItem struct {
	Instance  string    `json:"instance"`
	Addresses []string  `json:"addresses"`
	Version   string    `json:"version"`
	Started   time.Time `json:"started"`
	Revision  uint64    `json:"revision"`
	Zones     int       `json:"zones"`
	Leads     bool      `json:"leads"`
	Asked     bool      `json:"asked"`
	Store     struct {
		Kind      string `json:"kind"`
		Reachable *bool  `json:"reachable,omitempty"`
		Error     string `json:"error,omitempty"`
	} `json:"store"`
}

// store is in one word how a replica stands with its store.
func (r *replicaItem) store() string {
	switch {
	case r.Store.Reachable == nil:
		return r.Store.Kind + " unknown"
	case !*r.Store.Reachable:
		return r.Store.Kind + " away"
	default:
		return r.Store.Kind
	}
}

// getReplicas shows the replicas of the global that is asked, all or the one that is named.
func (c *cli) getReplicas(ctx context.Context, client *api.Client, args []string) error {
	const path = "/_replicas"
	raw, err := client.Do(ctx, api.Request{Path: path})
	if api.IsNotFound(err) {
		return errors.New("this server has no replicas to show: ask a global")
	} else if err != nil {
		return err
	}
	var list replicaList
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("%s: the answer is not what was expected: %w", path, err)
	}
	if len(args) > 1 {
		list.Items = slices.DeleteFunc(list.Items, func(r replicaItem) bool { return r.Instance != args[1] })
		if len(list.Items) == 0 {
			return api.NotFound("replica " + args[1])
		}
	}
	return c.printAnswer(list, func() error { return list.print(c.out, c.output == formatWide, time.Now()) })
}

func (l *replicaList) print(w io.Writer, wide bool, now time.Time) error {
	t := &table{header: []string{"INSTANCE", "VERSION", "AGE", "ZONES", "REVISION", "LEADS", "STORE"}}
	if wide {
		t.header = append(t.header, "ADDRESSES", "STARTED", "ASKED", "ERROR")
	}
	yes := map[bool]string{true: "yes", false: "no"}
	for i := range l.Items {
		r := &l.Items[i]
		row := []string{r.Instance, r.Version, age(r.Started, now), strconv.Itoa(r.Zones), strconv.FormatUint(r.Revision, 10), yes[r.Leads], r.store()}
		if wide {
			row = append(row, strings.Join(r.Addresses, ","), r.Started.Format(time.RFC3339), yes[r.Asked], r.Store.Error)
		}
		t.add(row...)
	}
	return t.print(w)
}
