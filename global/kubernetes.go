package global

import (
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/kubernetes"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// newBridge returns the connection between the global and a Kubernetes cluster, and tells the HTTP API what is written
// there. It returns nil if none is configured.
func newBridge(c *Config, durable store.Reader, spread *rollout, box *secrets.Box,
	diagnostics *server.Diagnostics) (*kubernetes.Bridge, error) {
	if c.Kubernetes == nil {
		return nil, nil
	}
	return kubernetes.Open(kubernetes.Config{
		Settings: *c.Kubernetes, Home: c.home(), Store: durable, Routes: spread.routes,
		Rollout: func(r *resources.Resource) *tracker.Rollout { return spread.of(r, nil) },
		Pulse:   spread.pulse, Term: c.term, Panics: c.Panics, Now: c.Now, Log: c.Log,
	}, kubernetes.Host{DataDir: c.DataDir, Box: box, Agent: "causeway-global"}, diagnostics)
}

// pulse returns a text that changes when rollouts may change although the store does not: a zone or a proxy connects or
// disconnects, or reports proxies that are behind. It excludes acknowledgements, because a caller that waits for them
// polls.
func (o *rollout) pulse() string {
	var b strings.Builder
	for _, zone := range o.sync.Zones() {
		since, away := o.sync.Away(zone)
		_, _ = fmt.Fprint(&b, zone, away, since.UnixNano(), o.sync.Unheard(zone))
		if r := o.sync.LastReport(zone); r != nil {
			_, _ = fmt.Fprint(&b, r.Streams, r.More, r.Behind)
		}
	}
	var latest uint64
	insights := 0
	for insight := range o.status.Snapshot().List(store.Query{Type: resources.TypeDataplaneInsight}) {
		latest, insights = max(latest, insight.Revision), insights+1
	}
	_, _ = fmt.Fprint(&b, latest, insights)
	return b.String()
}
