package zone

import (
	"fmt"
	"path/filepath"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/kubernetes"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/server"
)

// kubernetesDir holds the webhook's certificate.
const kubernetesDir = "kubernetes"

// newBridge returns what connects the zone with a Kubernetes cluster, and tells the HTTP API what is written there; nil
// if the zone is connected with none.
func newBridge(cfg *Config, o *opened, spread *rollout, diagnostics *server.Diagnostics) (*kubernetes.Bridge, error) {
	if cfg.Kubernetes == nil {
		return nil, nil
	}
	client, err := apiserver.Connect(apiserver.Config{Kubeconfig: cfg.Kubernetes.Kubeconfig,
		UserAgent: "causeway-zone/" + server.Version(), RequestsPerSecond: cfg.Kubernetes.RequestsPerSecond})
	if err != nil {
		return nil, err
	}
	certificate, err := kubernetes.OpenCertificate(filepath.Join(cfg.DataDir, kubernetesDir), o.box, cfg.Now)
	if err != nil {
		return nil, err
	}
	diagnostics.AddExpiries(certificate.Expiries)
	bridge, err := kubernetes.New(kubernetes.Config{
		Settings: *cfg.Kubernetes, Client: client, Home: o.home, Store: o.store, Routes: spread.routes,
		Rollout: func(r *resources.Resource) *tracker.Rollout { return spread.of(r, nil) },
		Pulse: func() string {
			return fmt.Sprint(spread.status.Snapshot().Revision(), spread.link != nil && spread.link.Connected())
		},
		Serving: certificate, Panics: cfg.Panics, Now: cfg.Now, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	spread.routes.SetObjects(bridge)
	diagnostics.Registry.MustRegister(cfg.Panics.Collector("metrics", bridge))
	return bridge, nil
}
