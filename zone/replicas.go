package zone

import (
	"context"
	"errors"

	"github.com/causeway-mesh/causeway/kubernetes/leader"
	"github.com/causeway-mesh/causeway/resources"
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

// whileLeading calls run once this replica leads, with a context that ends with the lead; at once for a zone without
// replicas. The error is leader.ErrLost after a lead that was lost.
func whileLeading(ctx context.Context, cfg *Config, run func(context.Context, *Config) (*opened, error)) error {
	if cfg.Kubernetes == nil || cfg.Kubernetes.Lease == "" {
		_, err := run(ctx, cfg)
		return err
	}
	box, err := secrets.OpenBox(secrets.Config{KeyFile: cfg.SecretsKeyFile, Passphrase: cfg.SecretsPassphrase, Log: cfg.Log})
	if err != nil {
		return err
	}
	cfg.term, err = leader.Lead(ctx, leader.Config{Kubeconfig: cfg.Kubernetes.Kubeconfig, Agent: "causeway-zone",
		Namespace: cfg.SystemNamespace, Lease: cfg.Kubernetes.Lease, Pod: cfg.Kubernetes.Pod, DataDir: cfg.DataDir,
		StoreFile: cfg.Store.Path, Box: box, DiagnosticsAddress: cfg.DiagnosticsAddress,
		Panics: cfg.Panics, Now: cfg.Now, Log: cfg.Log})
	if cfg.term == nil || err != nil {
		return err
	}
	leading, cancel := cfg.term.Context(ctx)
	defer cancel()
	o, err := run(leading, cfg)
	err = cfg.term.Err(err)
	var from store.Reader
	if o != nil {
		from = o.store
	}
	cfg.term.Close(ctx, from)
	return err
}

// held returns why the zone must not write: its data folder is gone, or another replica leads.
func (c *Config) held() error { return errors.Join(c.folder.Check(), c.term.Held()) }

// keep returns the function that stores changes for the other replicas; nil for a zone without any.
func (c *Config) keep() func(uint64, map[resources.Key]*resources.Resource) error {
	if c.term == nil {
		return nil
	}
	return c.term.Keep
}
