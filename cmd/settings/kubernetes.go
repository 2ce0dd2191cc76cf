package settings

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/causeway-mesh/causeway/kubernetes"
	"github.com/causeway-mesh/causeway/kubernetes/leader"
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
	f.StringVar(&k.settings.Lease, "kubernetes-lease", "", "`name` of the Lease, in the system namespace, by which the replicas of a StatefulSet choose the one that serves; empty for a server without replicas")
	f.StringVar(&k.settings.Pod, "kubernetes-pod", "", "`name` of this replica's pod; default: the host name")
}

// AddAuthority adds the flag of a server whose proxies run in the cluster.
func (k *Kubernetes) AddAuthority(f *pflag.FlagSet) {
	f.StringVar(&k.settings.AuthorityConfigMap, "kubernetes-ca-config-map", "", "`name` of a ConfigMap in the system namespace in which the server keeps the CA of --xds-address as ca.crt, for proxies that start in that namespace; empty for none")
}

// Settings returns the settings, or nil for a server without a cluster.
func (k *Kubernetes) Settings() (*kubernetes.Settings, error) {
	if !k.on && k.settings.Kubeconfig == "" {
		if k.settings.Lease != "" {
			return nil, errors.New("--kubernetes-lease: needs --kubernetes")
		}
		return nil, nil
	}
	if k.settings.WebhookAddress != "" && k.settings.WebhookConfiguration == "" {
		return nil, errors.New("--kubernetes-webhook-configuration: want the name of the configurations of the webhook")
	}
	return &k.settings, nil
}

// Again returns a command that starts again, in the same process, as a replica that waits when it leads no longer, unless
// it was told to end.
func Again(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error { return leader.Again(cmd.Context(), run(cmd, args)) }
}
