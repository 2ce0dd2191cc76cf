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

// newBridge returns what connects the global with a Kubernetes cluster, and tells the HTTP API what is written there; nil
// if the global is connected with none.
func newBridge(c *Config, durable store.Reader, spread *rollout, box *secrets.Box,
	diagnostics *server.Diagnostics) (*kubernetes.Bridge, error) {
	if c.Kubernetes == nil {
		return nil, nil
	}
	return kubernetes.Open(kubernetes.Config{
		Settings: *c.Kubernetes, Home: c.home(), Store: durable, Routes: spread.routes,
		Rollout: func(r *resources.Resource) *tracker.Rollout { return spread.of(r, nil) },
		Pulse:   spread.pulse, Panics: c.Panics, Now: c.Now, Log: c.Log,
	}, kubernetes.Place{DataDir: c.DataDir, Box: box, Agent: "causeway-global"}, diagnostics)
}

// pulse is a text that differs once rollouts may differ, although the store does not: because a zone or a proxy has come,
// gone, or told of proxies that are behind. Acknowledgements are not in it: who waits for them asks again.
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
