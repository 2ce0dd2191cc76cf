package settings

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/server"
)

// diagnosticsFlag is the setting for the address of the diagnostics port.
const diagnosticsFlag = "diagnostics-address"

// NewHealthcheck returns a program's command that queries the health of the server of run, on the same machine and with
// the same settings.
func NewHealthcheck(program string, run *cobra.Command) *cobra.Command {
	var live bool
	var address, config string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Check whether the server on this machine is ready",
		Long: "Checks whether the server on this machine, or in this container, is ready. The exit status is 0 if it is, 1 if it is not\n" +
			"or does not answer. The address comes from the settings of run: the environment and the --config file.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := run.Flags()
			for name, value := range map[string]string{configFlag: config, diagnosticsFlag: address} {
				if value == "" {
					continue
				}
				if err := flags.Set(name, value); err != nil {
					return err
				}
			}
			if err := Load(flags); err != nil {
				return err
			}
			page := server.ReadyPage
			if live {
				page = server.LivePage
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			if err := server.AskHealth(ctx, flags.Lookup(diagnosticsFlag).Value.String(), page); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "ok")
			return err
		},
	}
	cmd.Example = "  " + program + " healthcheck\n  " + program + " healthcheck --live --timeout 1s"
	f := cmd.Flags()
	f.StringVar(&address, diagnosticsFlag, "",
		"`address` of the diagnostics port; by default from the environment, the file, or run's default")
	f.StringVar(&config, configFlag, "", "YAML `file` with the settings of run")
	markSettings(f)
	f.BoolVar(&live, "live", false, "only check that the server answers, ready or not")
	f.DurationVar(&timeout, "timeout", 5*time.Second, "`time` for the answer")
	return cmd
}
