package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/causeway-mesh/causeway/capture/cni"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/server"
)

// leavingTime limits the question whether the plugin is being uninstalled. The kubelet waits longer.
const leavingTime = 10 * time.Second

func newCNI() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cni",
		Short: "Redirect the connections of pods to their proxies when their network is made",
		Long: "Installs this program as " + cni.Name + ", a plugin of the Container Network Interface, on a node of\n" +
			"Kubernetes. The plugin sets the rules of capture in the networks of pods that the zone gave a proxy, so\n" +
			"that no container of a pod needs the capability NET_ADMIN. The container runtime runs it by its name.",
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newCNIRun(), newCNIStatus(), newCNIUninstall())
	return cmd
}

func newCNIRun() *cobra.Command {
	n, daemonSet := cni.Node{}, ""
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Install the plugin on this node, and keep it in its place until SIGTERM",
		Long: "Copies this program into the node's folder of plugins, and adds it to the end of the list of plugins\n" +
			"that the container runtime uses. If another program writes the list anew, it adds the plugin again.\n\n" +
			"At SIGTERM it removes the plugin if the DaemonSet of --daemonset is gone or being deleted, or if the\n" +
			"account has lost its rights, as after an uninstallation. Otherwise the plugin stays, and pods that start\n" +
			"during an upgrade are captured.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := server.NewLogger(cmd.ErrOrStderr(), "info", "json")
			if err != nil {
				return err
			}
			if strings.Count(daemonSet, "/") != 1 && daemonSet != "" {
				return fmt.Errorf("--daemonset %q: want NAMESPACE/NAME", daemonSet)
			}
			if n.Program, err = os.Executable(); err != nil {
				return err
			}
			err = n.Keep(cmd.Context(), func(_ bool, err error) {
				if err != nil {
					log.Error("the plugin is not in its place: new pods with a proxy may not start on this node", "error", err)
					return
				}
				log.Info("the plugin is in its place", "bin", n.BinDir, "conf", n.ConfDir)
			})
			if err != nil {
				return err
			}
			return leave(context.WithoutCancel(cmd.Context()), &n, daemonSet, log)
		},
	}
	addNodeFlags(cmd.Flags(), &n)
	cmd.Flags().StringVar(&daemonSet, "daemonset", "", "`NAMESPACE/NAME` of the DaemonSet that runs this command; without it the plugin stays at the end")
	return cmd
}

// leave removes the plugin if its DaemonSet is gone for good.
func leave(ctx context.Context, n *cni.Node, daemonSet string, log *slog.Logger) error {
	leaves, why := false, "--daemonset is not set"
	if daemonSet != "" {
		ctx, cancel := context.WithTimeout(ctx, leavingTime)
		defer cancel()
		client, err := apiserver.Connect(apiserver.Config{UserAgent: cni.Name})
		if err != nil {
			return err
		}
		leaves, why = uninstalled(ctx, client, daemonSet)
	}
	if !leaves {
		log.Info("the plugin stays", "why", why)
		return nil
	}
	removed, err := n.Uninstall()
	if err != nil {
		return err
	}
	log.Info("the plugin is uninstalled", "removed", removed, "why", why)
	return nil
}

// daemonSets is the kind of DaemonSets.
var daemonSets = apiserver.Kind{Group: "apps", Version: "v1", Plural: "daemonsets", Name: "DaemonSet", Namespaced: true}

// uninstalled reports whether a DaemonSet is gone for good, and why.
func uninstalled(ctx context.Context, client *apiserver.Client, daemonSet string) (yes bool, why string) {
	namespace, name, _ := strings.Cut(daemonSet, "/")
	is, err := client.Get(ctx, daemonSets, apiserver.Name{Namespace: namespace, Name: name})
	var refused *apiserver.Error
	switch {
	case err == nil && is.Meta.DeletionTimestamp == nil:
		return false, "the DaemonSet is there"
	case err == nil:
		return true, "the DaemonSet is being deleted"
	case errors.As(err, &refused):
		gone := refused.Code == http.StatusNotFound || refused.Code == http.StatusUnauthorized || refused.Code == http.StatusForbidden
		return gone, err.Error()
	}
	return false, err.Error()
}

func newCNIStatus() *cobra.Command {
	n := cni.Node{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Report whether the plugin is in its place on this node",
		Long:  "Reports whether the plugin is in its place on this node. The exit status is 0 if so, 1 if not.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if n.Program, err = os.Executable(); err == nil {
				err = n.Check()
			}
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), "installed")
			}
			return err
		},
	}
	addNodeFlags(cmd.Flags(), &n)
	return cmd
}

func newCNIUninstall() *cobra.Command {
	n := cni.Node{}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the plugin from this node",
		Long: "Removes the plugin from all lists of plugins of this node, and then its program. Pods that run stay\n" +
			"captured; new pods with a proxy start only where their containers set the rules.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			removed, err := n.Uninstall()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), map[bool]string{true: "removed", false: "nothing to remove"}[removed])
			return err
		},
	}
	addNodeFlags(cmd.Flags(), &n)
	return cmd
}

func addNodeFlags(f *pflag.FlagSet, n *cni.Node) {
	f.StringVar(&n.BinDir, "bin-dir", "/opt/cni/bin", "`folder` of the node's plugins")
	f.StringVar(&n.ConfDir, "conf-dir", "/etc/cni/net.d", "`folder` of the lists of plugins")
	f.StringVar(&n.ConfFile, "conf-file", "", "`name` of the list that the container runtime uses; the first one in the folder by default")
	f.StringSliceVar(&n.Except, "except-namespaces", nil, "`namespaces` whose pods are never captured")
}
