package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/credential/contexts"
)

func newConfig(c *cli) *cobra.Command {
	group := newGroup("config", "Name the servers that you use, and choose one", newGetContexts(c), newCurrentContext(c),
		newUseContext(c), newSetContext(c), newDeleteContext(c))
	group.Long = "A context is a server, global or zone: its address, the CA that identifies it, and the credential that\n" +
		"it gets. Contexts are in the files that --config or " + contexts.Env + " names, by default in\n" +
		"causeway/config.yaml of your configuration folder ($XDG_CONFIG_HOME, ~/.config). The file contains\n" +
		"no secrets; it names the files that do. causewayctl login also creates a context, and signs in to it.\n\n" +
		"A command uses the server of --context, of --address or " + addressEnv + ", of the current context,\n" +
		"or else " + defaultAddress + ". Flags for the CA and the credential take precedence over those of\n" +
		"a context. A context never gets those of the environment, which belong to " + addressEnv + ": a\n" +
		"context without a credential sends none."
	return group
}

// contextRow is a context as commands show it.
type contextRow struct {
	Current bool `json:"current"`
	contexts.Context
}

func newGetContexts(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "get-contexts",
		Short:   "List the contexts",
		Example: "  causewayctl config get-contexts\n  causewayctl config get-contexts -o yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			files, err := c.readContexts()
			if err != nil {
				return err
			}
			rows := []contextRow{}
			t := &table{header: []string{"CURRENT", "NAME", "ADDRESS", "CREDENTIAL"}}
			for _, one := range files.All() {
				row := contextRow{one.Name == files.Current(), *one}
				rows = append(rows, row)
				mark := " "
				if row.Current {
					mark = "*"
				}
				t.add(mark, one.Name, addressText(one), credentialText(one))
			}
			return failed(c.printAnswer(rows, func() error {
				if len(rows) == 0 {
					_, err := fmt.Fprintln(c.errOut, "no contexts; causewayctl config set-context NAME --address URL adds one, causewayctl login NAME --address URL signs in to one")
					return err
				}
				return t.print(c.out)
			}))
		},
	}
}

// addressText returns the address, and how it is reached.
func addressText(one *contexts.Context) string {
	if one.KubeContext == "" {
		return one.Address
	}
	return one.Address + " (Kubernetes " + one.KubeContext + ")"
}

func credentialText(one *contexts.Context) string {
	switch {
	case one.TokenFile != "":
		return "token in " + one.TokenFile
	case one.ClientCert != "":
		return "certificate in " + one.ClientCert
	case one.SessionFile != "":
		return sessionText(one.SessionFile)
	}
	return "none"
}

func newCurrentContext(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "current-context", Short: "Print the name of the current context", Args: cobra.NoArgs,
		Long:    "Exit status: 0 there is one, 1 there is none.",
		Example: "  causewayctl config current-context",
		RunE: func(*cobra.Command, []string) error {
			files, err := c.readContexts()
			if err != nil {
				return err
			}
			if files.Current() == "" {
				return failed(fmt.Errorf("no context is the current one: causewayctl config use-context NAME chooses one"))
			}
			return failed(c.printAnswer(map[string]string{"name": files.Current()}, func() error {
				_, err := fmt.Fprintln(c.out, files.Current())
				return err
			}))
		},
	}
}

func newUseContext(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "use-context NAME", Short: "Make a context the current one", Args: cobra.ExactArgs(1),
		Example:           "  causewayctl config use-context zone-1",
		ValidArgsFunction: c.completeContext,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.editContexts(cmd.Context(), func() error {
				files, err := c.readContextsWith(args[0])
				if err != nil {
					return err
				}
				first := files.First()
				first.CurrentContext = args[0]
				if err := first.Save(); err != nil {
					return err
				}
				fmt.Fprintf(c.errOut, "commands now ask %s (%s)\n", args[0], first.Path())
				return nil
			})
		},
	}
}

func newSetContext(c *cli) *cobra.Command {
	use := false
	cmd := &cobra.Command{
		Use:   "set-context NAME --address URL",
		Short: "Add a context, or replace it",
		Long: "The context gets the values of --address, --ca or --ca-sha256, and --token-file or --client-cert\n" +
			"with --client-key. Paths are stored as absolute ones. The first context becomes the current one.\n" +
			"Nothing is sent to the server.\n\n" +
			"With --kube-context, the address is that of a Service in a cluster, and commands reach it by\n" +
			"kubectl port-forward. Without --ca, the context trusts the CA that the server shows now, by way of\n" +
			"the cluster.",
		Example: "  causewayctl config set-context global --address https://global.example:5681 --ca ca.crt --token-file admin.token\n" +
			"  causewayctl config set-context zone-1 --address http://127.0.0.1:15681 --use\n" +
			"  causewayctl config set-context prod --kube-context prod --address https://global-causeway-global-api.causeway.svc:5681 --token-file admin.token",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeContext,
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := c.contextOfFlags(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return c.editContexts(cmd.Context(), func() error {
				files, err := contexts.ReadFiles(c.context.file)
				if err != nil {
					return usagef("%w", err)
				}
				file, first := files.Holding(set.Name), files.First()
				if file == nil {
					return usagef("there is no folder of configurations: set --config FILE")
				}
				file.Set(*set)
				if use || files.Current() == "" {
					first.CurrentContext = set.Name
				}
				if err := c.dropSession(cmd.Context(), file, set.Name); err != nil {
					return err
				}
				if err := saveContexts(file, first); err != nil {
					return err
				}
				fmt.Fprintf(c.errOut, "context %s is in %s\n", set.Name, file.Path())
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&use, "use", false, "also make it the current context")
	return cmd
}

// contextOfFlags returns the context that the flags describe. It ignores the environment.
func (c *cli) contextOfFlags(ctx context.Context, name string) (*contexts.Context, error) {
	flags := c.credential.flags
	if !flags.Changed("address") {
		return nil, usagef("--address is missing: the URL of the server's HTTP API%s", c.kube.addressHint())
	}
	if flags.Changed("token") {
		return nil, usagef("--token: contexts hold no secrets; write it to a file that only you may read, and give --token-file")
	}
	set := &contexts.Context{Name: name, Address: c.address, KubeContext: c.kube.context}
	for flag, field := range map[string]*string{"kubeconfig": &set.Kubeconfig, "ca": &set.CA, "token-file": &set.TokenFile,
		"client-cert": &set.ClientCert, "client-key": &set.ClientKey} {
		if !flags.Changed(flag) {
			continue
		}
		path, err := filepath.Abs(flags.Lookup(flag).Value.String())
		if err != nil {
			return nil, failed(err)
		}
		*field = path
	}
	if flags.Changed("ca-sha256") {
		set.CASHA256 = c.credential.pin
	}
	// A command would refuse these with the same errors: an unreadable file, two credentials, a plaintext address with
	// a token.
	trial := &cli{address: set.Address, timeout: c.timeout, context: contextFlags{chosen: true}, credential: c.credential, kube: kubeFlags{context: c.kube.context, kubeconfig: c.kube.kubeconfig}}
	trial.credential.noEnv = true
	trial.caFile, trial.credential.pin, trial.credential.tokenFile = set.CA, set.CASHA256, set.TokenFile
	if _, err := trial.connect(); err != nil {
		return nil, err
	}
	if set.KubeContext != "" && set.CA == "" && set.CASHA256 == "" {
		var err error
		if set.CASHA256, err = c.learnCA(ctx); err != nil {
			return nil, err
		}
	}
	if err := set.Validate(); err != nil {
		return nil, usagef("%w", err)
	}
	return set, nil
}

func newDeleteContext(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "delete-context NAME", Short: "Forget a context and its session; the other files that it names stay", Args: cobra.ExactArgs(1),
		Example:           "  causewayctl config delete-context zone-1",
		ValidArgsFunction: c.completeContext,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.editContexts(cmd.Context(), func() error {
				files, err := c.readContextsWith(args[0])
				if err != nil {
					return err
				}
				file, first := files.Holding(args[0]), files.First()
				if err := c.dropSession(cmd.Context(), file, args[0]); err != nil {
					return err
				}
				file.Delete(args[0])
				if err := file.Save(); err != nil {
					return err
				}
				if _, err := files.Find(args[0]); err != nil && first.CurrentContext == args[0] {
					first.CurrentContext = ""
					if err := first.Save(); err != nil {
						return err
					}
				}
				fmt.Fprintf(c.errOut, "context %s is gone from %s\n", args[0], file.Path())
				return nil
			})
		},
	}
}
