package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// settingsRule is the rule for the settings of both servers.
const settingsRule = `Flags of ` + "`run`" + ` are also keys of the YAML file that ` + "`--config`" + ` names, and environment variables. A flag wins over the
environment, the environment over the file. An unknown key is an error that names it.
`

// ctlRule is the rule for all commands of causewayctl.
const ctlRule = `The flags and exit statuses of the first section apply to all commands.
`

// programPage returns the page of a program's commands and flags. It does not depend on the caller's environment.
func programPage(ctx context.Context, bin, program string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, program), "reference")
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "CAUSEWAY_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s reference: %w", program, err)
	}
	rule := settingsRule
	if program == "causewayctl" {
		rule = ctlRule
	}
	return "# " + program + "\n\n" + written + "\n" + rule + string(out), nil
}
