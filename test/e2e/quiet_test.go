package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// quietRestarts restarts the servers one after the other in every way, without any change, and expects that nothing is
// written and that the Envoy receives nothing.
func (c *crash) quietRestarts() {
	c.t.Helper()
	servers := []*cluster.Server{c.global, c.zone1, c.zone2}
	c.caughtUp()
	before := c.contents(servers)
	envoyBefore := c.envoyUpdates()
	for _, s := range servers {
		for _, kill := range []bool{true, false} {
			if kill {
				s.Kill()
			} else {
				c.must(s.Stop(c.t.Context()))
			}
			c.must(s.Start(c.t.Context()))
			started := before[s]
			started.revision++ // a start writes one entry to the lineage of the store, and nothing else
			before[s] = started
			c.synced()
			c.becomes(c.frontend, "http-port", true, ownerKRI)
			for server, was := range before {
				if diff := was.compare(c.contentsOf(server)); diff != "" {
					c.t.Errorf("after the restart of %s (killed: %t), on %s %s", s.Name(), kill, server.Name(), diff)
				}
			}
		}
	}
	for name, n := range c.envoyUpdates() {
		if n != envoyBefore[name] {
			c.t.Errorf("restarts touched the proxy: %s went from %d to %d", name, envoyBefore[name], n)
		}
	}
}

// caughtUp waits until the Envoy has everything, by means of a last policy that it then removes.
func (c *crash) caughtUp() {
	c.t.Helper()
	const mark = "spiffe://nobody/caught-up"
	marked := func(want bool) {
		c.eventually("the Envoy to catch up", func(ctx context.Context) error {
			config, err := c.backend.Proxy.ConfigDump(ctx)
			if err == nil && strings.Contains(config, mark) != want {
				err = errNotYet
			}
			return err
		})
	}
	c.apply(c.global, operator(entry("deny", "Exact", mark)))
	marked(true)
	c.remove(c.global, operator(entry("deny", "Exact", mark)))
	marked(false)
	c.eventually("the policy to leave all", func(ctx context.Context) error {
		for _, s := range []*cluster.Server{c.global, c.zone1, c.zone2} {
			if err := s.API.Get(ctx, "/_kri/"+operatorKRI, nil); cluster.StatusOf(err) != http.StatusNotFound {
				return errors.Join(fmt.Errorf("%s still has it", s.Name()), err)
			}
		}
		return nil
	})
}

// envoyUpdates returns the statistics of listeners and of discovered filters.
func (c *crash) envoyUpdates() map[string]uint64 {
	c.t.Helper()
	stats, err := c.backend.Proxy.ListenerStats(c.t.Context())
	c.must(err)
	filters, err := c.backend.Proxy.Stats(c.t.Context(),
		`^extension_config_discovery\..*\.(config_reload|update_success|update_rejected|config_fail)$`)
	c.must(err)
	if len(filters) == 0 {
		c.t.Fatal("no statistics of filters")
	}
	maps.Copy(stats, filters)
	return stats
}

// synced waits until every zone has a session in which the lists of all types have been exchanged.
func (c *crash) synced() {
	c.t.Helper()
	err := cluster.Until(c.t.Context(), reconnectPatience, "the zones to be in sync", func(ctx context.Context) error {
		var overviews struct {
			Items []struct {
				Name    string `json:"name"`
				Insight struct {
					Subscriptions []struct {
						DisconnectTime *time.Time `json:"disconnectTime"`
						Status         struct {
							Total struct {
								Sent         string `json:"responsesSent"`
								Acknowledged string `json:"responsesAcknowledged"`
							} `json:"total"`
							Stat map[string]json.RawMessage `json:"stat"`
						} `json:"status"`
					} `json:"subscriptions"`
				} `json:"zoneInsight"`
			} `json:"items"`
		}
		if err := c.global.API.Get(ctx, "/zones/_overview", &overviews); err != nil {
			return err
		}
		online := 0
		for _, z := range overviews.Items {
			n := len(z.Insight.Subscriptions)
			if n == 0 {
				return fmt.Errorf("%s has not connected", z.Name)
			}
			last := z.Insight.Subscriptions[n-1]
			total := last.Status.Total
			if last.DisconnectTime != nil || len(last.Status.Stat) < fewestTypes || total.Sent != total.Acknowledged {
				return fmt.Errorf("%s is not in sync: %+v", z.Name, last)
			}
			online++
		}
		if online != 2 {
			return fmt.Errorf("%d zones are known", online)
		}
		return nil
	})
	c.must(err)
}

// reconnectPatience is long because zones wait longer between attempts after each failure.
const reconnectPatience = 2 * time.Minute

// fewestTypes is a lower bound for the number of types that go to a zone. Each gets a first response, even an empty
// one.
const fewestTypes = 20

// content is the resources of a server and their revision.
type content struct {
	revision float64
	items    map[string]cluster.Item
}

func (c *crash) contents(servers []*cluster.Server) map[*cluster.Server]content {
	c.t.Helper()
	all := map[*cluster.Server]content{}
	for _, s := range servers {
		all[s] = c.contentsOf(s)
	}
	return all
}

// contentsOf reads every resource of every type that is not live.
func (c *crash) contentsOf(s *cluster.Server) content {
	c.t.Helper()
	var types struct {
		Resources []struct {
			Name, Path string
		} `json:"resources"`
	}
	c.must(s.API.Get(c.t.Context(), "/_resources", &types))
	revision, err := s.Revision(c.t.Context())
	c.must(err)
	got := content{revision: revision, items: map[string]cluster.Item{}}
	for _, r := range types.Resources {
		if strings.HasSuffix(r.Name, "Insight") {
			continue
		}
		items, err := s.API.List(c.t.Context(), "/"+r.Path)
		if err != nil && strings.Contains(err.Error(), "/std-errors/elsewhere") {
			continue // only globals know
		}
		c.must(err)
		for _, it := range items {
			got.items[fmt.Sprintf("%s %s/%s/%s", it.Type, it.Mesh, it.Namespace, it.Name)] = it
		}
	}
	if len(got.items) < 5 {
		c.t.Fatalf("%s holds only %v", s.Name(), got.items)
	}
	return got
}

// compare describes the differences, or returns an empty string.
func (was content) compare(is content) string {
	var differences []string
	for key, a := range was.items {
		b, ok := is.items[key]
		switch {
		case !ok:
			differences = append(differences, key+" is gone")
		case !a.ModificationTime.Equal(b.ModificationTime):
			differences = append(differences, fmt.Sprintf("%s was written again: %s, then %s", key, a.Spec, b.Spec))
		}
	}
	for key := range is.items {
		if _, ok := was.items[key]; !ok {
			differences = append(differences, key+" is new")
		}
	}
	if len(differences) == 0 && was.revision != is.revision {
		differences = append(differences, fmt.Sprintf("the revision went from %v to %v", was.revision, is.revision))
	}
	return strings.Join(differences, "\n")
}
