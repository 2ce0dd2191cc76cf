package zone

import (
	"context"
	"errors"

	"github.com/causeway-mesh/causeway/kubernetes/leader"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/secrets"
)

// validateReplicas returns an error for settings that replicas cannot have.
func (c *Config) validateReplicas() error {
	if c.Kubernetes == nil {
		return nil
	}
	return leader.Check(c.Kubernetes.Lease, c.SecretsKeyFile, c.SecretsPassphrase, c.Store.Kind == backend.Etcd)
}

// whileLeading runs the zone once this replica leads, until the lead ends; at once for a zone without replicas. The
// error is leader.ErrLost after a lead that was lost.
func whileLeading(ctx context.Context, cfg *Config) error {
	if cfg.Kubernetes == nil || cfg.Kubernetes.Lease == "" {
		if err := leader.Alone(cfg.DataDir); err != nil {
			return err
		}
		_, err := run(ctx, cfg)
		return err
	}
	box, err := secrets.OpenBox(secrets.Config{KeyFile: cfg.SecretsKeyFile, Passphrase: cfg.SecretsPassphrase, Log: cfg.Log})
	if err != nil {
		return err
	}
	return leader.While(ctx, leader.Config{Kubeconfig: cfg.Kubernetes.Kubeconfig, Agent: "causeway-zone",
		Namespace: cfg.SystemNamespace, Lease: cfg.Kubernetes.Lease, Pod: cfg.Kubernetes.Pod, DataDir: cfg.DataDir,
		StoreFile: cfg.Store.Path, Box: box, DiagnosticsAddress: cfg.DiagnosticsAddress,
		Panics: cfg.Panics, Now: cfg.Now, Log: cfg.Log,
	}, func(ctx context.Context, term *leader.Term) (store.Reader, error) {
		cfg.term = term
		o, err := run(ctx, cfg)
		if o == nil {
			return nil, err
		}
		return o.store, err
	})
}

// held returns why the zone must not write: its data folder is gone, or another replica leads.
func (c *Config) held() error { return errors.Join(c.folder.Check(), c.term.Held()) }
