package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/causeway-mesh/causeway/cmd/settings"
	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/zone"
)

// maxJoinInput limits the size of a join string, in bytes.
const maxJoinInput = 16 << 10

func newJoin() *cobra.Command {
	cfg := zone.JoinConfig{}
	global := ""
	cmd := &cobra.Command{
		Use:   "join STRING | join -",
		Short: "Become a zone of a global, with the string that causewayctl zone create prints",
		Long: "Become a zone of a global, with the string that causewayctl zone create prints on the global.\n\n" +
			"The command creates a key, exchanges the string's token for a certificate, and seals both in the\n" +
			"data directory. The string works once. Afterwards causeway-zone run needs only the data directory.\n" +
			"With - the command reads the string from standard input; without an argument, from CAUSEWAY_JOIN:\n" +
			"both keep it off the command line.",
		Example: "  causeway-zone join causeway-join:v1:eyJ6b25l... --data-dir /var/lib/causeway-zone\n" +
			"  ssh global causewayctl zone create zone-3 | causeway-zone join - --data-dir /var/lib/causeway-zone",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := settings.Load(cmd.Flags()); err != nil {
				return err
			}
			log, err := server.NewLogger(cmd.ErrOrStderr(), "info", "text")
			if err != nil {
				return err
			}
			cfg.Log, cfg.Now, cfg.SecretsPassphrase = log, settings.Clock(), os.Getenv(secrets.PassphraseEnv)
			if cfg.Join, err = joinString(cmd, args); err != nil {
				return err
			}
			if global != "" {
				if cfg.Addresses, err = zone.GlobalAddresses(global); err != nil {
					return fmt.Errorf("--global: %w", err)
				}
			}
			joined, err := zone.Join(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "joined as zone %s, through %s\ncertificate valid until %s; a running zone renews it\nnow: causeway-zone run --data-dir %s\n",
				joined.Zone, joined.Global, joined.Expires.Local().Format(time.DateTime+" MST"), cfg.DataDir)
			return err
		},
	}
	addJoinFlags(cmd.Flags(), &cfg, &global)
	return cmd
}

func addJoinFlags(f *pflag.FlagSet, cfg *zone.JoinConfig, global *string) {
	f.StringVar(&cfg.DataDir, "data-dir", "", "`folder` for the store, the certificates and the identity keys (required)")
	f.StringVar(global, "global", "", "`URL` to reach the global at, grpcs://HOST:PORT, instead of the addresses in the string; of several replicas: grpcs://A:5685,B:5685")
	f.StringVar(&cfg.SecretsKeyFile, "secrets-key-file", "",
		"`file` of the key that seals secrets; or set a passphrase in "+secrets.PassphraseEnv)
	settings.AddConfigFlag(f)
}

// joinString returns the join string from the command line, standard input or the environment.
func joinString(cmd *cobra.Command, args []string) (string, error) {
	switch {
	case len(args) == 0 && strings.TrimSpace(os.Getenv("CAUSEWAY_JOIN")) != "":
		return os.Getenv("CAUSEWAY_JOIN"), nil
	case len(args) == 0:
		return "", errors.New("no join string: give it as the argument, on standard input with -, or in CAUSEWAY_JOIN")
	case args[0] == "-":
		raw, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxJoinInput))
		return string(raw), err
	}
	return args[0], nil
}

// joinOfFile returns the join string in file, or join if no file is named. A missing file is not an error once the zone
// has joined.
func joinOfFile(join, file, dataDir string) (string, error) {
	switch {
	case file == "":
		return join, nil
	case join != "":
		return "", errors.New("--join and --join-file are both given: give one")
	}
	text, err := credential.Token("--join-file", file)
	if errors.Is(err, fs.ErrNotExist) && zone.HasJoined(dataDir) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%w; write what causewayctl zone create prints into it", err)
	}
	return text, nil
}
