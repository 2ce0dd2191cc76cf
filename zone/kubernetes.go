package zone

import (
	"fmt"
	"path/filepath"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/kubernetes"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// kubernetesDir holds the webhook's certificate.
const kubernetesDir = "kubernetes"

// newBridge returns what connects the zone with a Kubernetes cluster; nil if it is connected with none.
func newBridge(cfg *Config, home resources.Home, spread *rollout, box *secrets.Box,
	diagnostics *server.Diagnostics) (*kubernetes.Bridge, error) {
	if cfg.Kubernetes == nil {
		return nil, nil
	}
	client, err := apiserver.Connect(apiserver.Config{Kubeconfig: cfg.Kubernetes.Kubeconfig,
		UserAgent: "causeway-zone/" + server.Version(), RequestsPerSecond: cfg.Kubernetes.RequestsPerSecond})
	if err != nil {
		return nil, err
	}
	certificate, err := kubernetes.OpenCertificate(filepath.Join(cfg.DataDir, kubernetesDir), box, cfg.Now)
	if err != nil {
		return nil, err
	}
	diagnostics.AddExpiries(certificate.Expiries)
	bridge, err := kubernetes.New(kubernetes.Config{
		Settings: *cfg.Kubernetes, Client: client, Home: home, Store: spread.store, Routes: spread.routes,
		Rollout: func(r *resources.Resource) *tracker.Rollout { return spread.of(r, nil) },
		Pulse: func() string {
			return fmt.Sprint(spread.status.Snapshot().Revision(), spread.link != nil && spread.link.Connected())
		},
		Serving: certificate, Panics: cfg.Panics, Now: cfg.Now, Log: cfg.Log,
	})
	if err == nil {
		diagnostics.Registry.MustRegister(cfg.Panics.Collector("metrics", bridge))
	}
	return bridge, err
}

// objects reports what users of the zone write as objects.
type objects struct {
	bridge **kubernetes.Bridge
}

// objectsOf returns nil if the zone is connected with no cluster.
func objectsOf(cfg *Config, bridge **kubernetes.Bridge) api.Objects {
	if cfg.Kubernetes == nil {
		return nil
	}
	return objects{bridge: bridge}
}

// Are implements api.Objects.
func (o objects) Are(t resources.Type) bool { return kubernetes.Fed(t) }

// Gone implements api.Objects.
func (o objects) Gone(key resources.Key) bool { return (*o.bridge).Gone(key) }
