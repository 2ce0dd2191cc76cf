package settings

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/causeway-mesh/causeway/kubernetes"
)

// Kubernetes are the flags of a server whose users write in a Kubernetes cluster.
type Kubernetes struct {
	on       bool
	settings kubernetes.Settings
}

// Add adds the flags. name is the default of the webhook's configurations.
func (k *Kubernetes) Add(f *pflag.FlagSet, name string) {
	f.BoolVar(&k.on, "kubernetes", false, "users write in the Kubernetes cluster that this server is a pod of, by kubectl, instead of to the HTTP API")
	f.StringVar(&k.settings.Kubeconfig, "kubernetes-kubeconfig", "", "`file` as kubectl reads it, for a server outside of the cluster; implies --kubernetes")
	f.StringVar(&k.settings.WebhookAddress, "kubernetes-webhook-address", ":9443", "`address` on which the API server asks what users may write; empty: it does not ask, and what is not valid is noticed only once it is there")
	f.StringVar(&k.settings.WebhookConfiguration, "kubernetes-webhook-configuration", name, "`name` of the MutatingWebhookConfiguration and of the ValidatingWebhookConfiguration, into which the server writes its CA")
}

// Settings returns the settings, or nil for a server without a cluster.
func (k *Kubernetes) Settings() (*kubernetes.Settings, error) {
	if !k.on && k.settings.Kubeconfig == "" {
		return nil, nil
	}
	if k.settings.WebhookAddress != "" && k.settings.WebhookConfiguration == "" {
		return nil, errors.New("--kubernetes-webhook-configuration: want the name of the configurations of the webhook")
	}
	return &k.settings, nil
}
