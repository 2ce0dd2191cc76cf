package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// otherFlags maps flags that people try, of one command or of all, to what does it.
var otherFlags = map[string]string{
	"apply --wait":     "causewayctl rollout status TYPE NAME --wait waits for what was applied",
	"--all-namespaces": "without --namespace, lists have all namespaces",
	"--zone": "--address URL or --context NAME asks the zone itself; on a global, -l kuma.io/zone=ZONE of causewayctl get selects " +
		"what comes from a zone, and its KRI names one resource",
	"--server": "--address URL names the server", "--url": "--address URL names the server",
	"--insecure": "--ca FILE or --ca-sha256 HEX names the CA of the server's certificate",
	"--force":    "causewayctl asks only where --yes answers",
}

var (
	unknownFlag   = regexp.MustCompile(`^unknown flag: --(\S+)$`)
	requiredFlags = regexp.MustCompile(`^required flag\(s\) (.*) not set$`)
	noUnit        = regexp.MustCompile(`time: (missing unit in|invalid) duration "`)
)

// aboutFlags adds to pflag's errors what would be right.
func aboutFlags(cmd *cobra.Command, err error) error {
	if found := requiredFlags.FindStringSubmatch(err.Error()); found != nil {
		var names []string
		for quoted := range strings.SplitSeq(found[1], ", ") {
			name := "--" + strings.Trim(quoted, `"`)
			if f := cmd.Flags().Lookup(name[2:]); f != nil && f.Shorthand != "" {
				name = "-" + f.Shorthand
			}
			names = append(names, name)
		}
		return usagef("required flag missing: %s: %s", strings.Join(names, ", "), cmd.UseLine())
	}
	if noUnit.MatchString(err.Error()) {
		return usagef("%w: want a number with its unit, such as 30s, 5m or 24h", err)
	}
	found := unknownFlag.FindStringSubmatch(err.Error())
	if found == nil {
		return err
	}
	group := strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()))
	for _, one := range []string{group + " --" + found[1], "--" + found[1]} {
		if otherFlags[one] != "" {
			return usagef("%w: %s", err, otherFlags[one])
		}
	}
	if near := nearestFlag(cmd, found[1]); near != "" {
		return usagef("%w: did you mean --%s?", err, near)
	}
	return err
}

// nearestFlag returns the flag of the command that differs from the typed one in a letter or two, or "".
func nearestFlag(cmd *cobra.Command, typed string) string {
	nearest, least := "", min(2, len(typed)/3)+1
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if distance := distanceOf(f.Name, typed); !f.Hidden && distance < least {
			nearest, least = f.Name, distance
		}
	})
	return nearest
}
