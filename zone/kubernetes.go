package zone

import (
	"fmt"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/kubernetes"
	"github.com/causeway-mesh/causeway/kubernetes/discovery"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/server"
)

// newBridge returns what connects the zone with a Kubernetes cluster, and tells the HTTP API what is written there; nil
// if the zone is connected with none.
func newBridge(cfg *Config, o *opened, spread *rollout, diagnostics *server.Diagnostics) (*kubernetes.Bridge, error) {
	if cfg.Kubernetes == nil {
		return nil, nil
	}
	return kubernetes.Open(kubernetes.Config{
		Settings: *cfg.Kubernetes, Home: o.home, Store: o.store, Routes: spread.routes,
		Rollout: func(r *resources.Resource) *tracker.Rollout { return spread.of(r, nil) },
		Pulse: func() string {
			return fmt.Sprint(spread.status.Snapshot().Revision(), spread.link != nil && spread.link.Connected())
		},
		Panics: cfg.Panics, Now: cfg.Now, Log: cfg.Log,
	}, kubernetes.Place{DataDir: cfg.DataDir, Box: o.box, Agent: "causeway-zone"}, diagnostics)
}

// newDiscovery returns what makes Dataplanes and MeshServices of the pods and Services of the bridge's cluster; nil without
// a cluster.
func newDiscovery(cfg *Config, o *opened, bridge *kubernetes.Bridge) *discovery.Controller {
	if bridge == nil {
		return nil
	}
	return discovery.New(discovery.Config{Client: bridge.Client, Store: o.store, Home: o.home, Log: cfg.Log})
}
