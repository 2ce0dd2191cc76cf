package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/causeway-mesh/causeway/cmd/settings"
	"github.com/causeway-mesh/causeway/global"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// newReplaceCA takes the settings of run that locate the CA, so that both commands can use the same --config file.
func newReplaceCA() *cobra.Command {
	cfg, take := &global.Config{}, false
	run := newRun(cfg)
	cmd := &cobra.Command{
		Use:   "replace-ca",
		Short: "Replace the CA that zones pin, while the global is stopped; all zones must join again",
		Long: "Replace the CA that signs the global's own certificates. Give it the settings of run, by flags,\n" +
			"environment or --config. Stop the global first, and with --store etcd all its replicas. The command\n" +
			"moves the old files into a folder below kds-tls.\n\n" +
			"Replicas share their CA: replace it on one of them, then run this with --take on each of the others.\n" +
			"Zones pin the CA: each must join again, with the join string that causewayctl zone create ZONE\n" +
			"--rejoin prints. Clients of the HTTP API need the new ca.crt.",
		Example: "  causeway-global replace-ca --data-dir /var/lib/causeway\n" +
			"  causeway-global replace-ca --config /etc/causeway/global.yaml --data-dir /var/lib/causeway-global --take   # on each other replica",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := settings.Load(run.Flags()); err != nil {
				return err
			}
			log, err := server.NewLogger(cmd.ErrOrStderr(), "warn", "text")
			if err != nil {
				return err
			}
			cfg.Log, cfg.SecretsPassphrase, cfg.Store.Password = log, os.Getenv(secrets.PassphraseEnv),
				os.Getenv(backend.PasswordEnv)
			done, err := global.ReplaceCA(cmd.Context(), *cfg, take)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			_, _ = fmt.Fprintf(out, "SHA-256 of the new CA: %s\n", done.SHA256)
			if done.Aside != "" {
				_, _ = fmt.Fprintf(out, "the old files are now in %s\n", done.Aside)
			}
			_, err = fmt.Fprintln(out, "start the global; then, for each zone: causewayctl zone create ZONE --rejoin, and causeway-zone join on its machine")
			return err
		},
	}
	ofStore := pflag.NewFlagSet("", pflag.ContinueOnError)
	settings.AddStoreFlags(ofStore, &backend.Config{}, "")
	for _, name := range []string{"data-dir", "secrets-key-file", "config"} {
		cmd.Flags().AddFlag(run.Flags().Lookup(name))
	}
	ofStore.VisitAll(func(f *pflag.Flag) { cmd.Flags().AddFlag(run.Flags().Lookup(f.Name)) })
	cmd.Flags().BoolVar(&take, "take", false, "use the CA that the replicas share, after another replica has replaced it")
	return cmd
}
