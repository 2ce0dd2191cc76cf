package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// otherWords maps words that people try as commands to the commands that do it.
var otherWords = map[string]string{ //nolint:gosec // words, no credentials
	"token": "user token, dataplane token and zone token", "status": "doctor and rollout status", "health": "doctor",
	"check": "doctor and lint", "list": "get", "show": "get and describe", "create": "apply", "whoami": "auth whoami",
	"can-i": "auth can-i", "logs": "audit", "context": "config use-context", "contexts": "config get-contexts",
	"denied": "report denied", "rotate": "keys rotate", "join": "zone create, and causeway-zone join", "sync": "inspect sync",
	"user create": "user token", "user add": "user token", "user delete": "user revoke", "user list": "audit and get accessrolebindings",
	"config add": "config set-context", "config list": "config get-contexts", "config view": "config get-contexts",
	"config remove": "config delete-context", "zone add": "zone create", "zone join": "zone create, and causeway-zone join",
	"zone remove": "zone delete", "backup restore": "restore", "backup list": "backup inspect",
}

var (
	unknownCommand = regexp.MustCompile(`^unknown command "(.*)" for `)
	wrongNumber    = regexp.MustCompile(`^(?:accepts|requires) (.*) arg\(s\), (?:only )?received (\d+)$`)
)

// aboutCommandLine adds to cobra's errors what would be right. cmd is the command that was run.
func aboutCommandLine(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	if found := wrongNumber.FindStringSubmatch(err.Error()); found != nil {
		return usagef("want %s argument(s), got %s: %s", found[1], found[2], cmd.UseLine())
	}
	found := unknownCommand.FindStringSubmatch(err.Error())
	if found == nil {
		return aboutFlags(cmd, err)
	}
	typed := found[1]
	if !cmd.HasAvailableSubCommands() {
		if cmd.Flags().Lookup("name") != nil {
			return usagef("%s takes no argument: did you mean --name %s?", cmd.CommandPath(), typed)
		}
		if cmd.Flags().Lookup("filename") != nil {
			return usagef("%s takes files by -f: %[1]s -f %s", cmd.CommandPath(), typed)
		}
		return usagef("%s takes no argument: %q is one too many", cmd.CommandPath(), typed)
	}
	cmd.SuggestionsMinimumDistance = min(2, max(1, len(typed)-3)) // of short words, many are near
	group := strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()))
	path := strings.TrimSpace(group + " " + typed)
	switch near := cmd.SuggestionsFor(typed); {
	case otherWords[path] != "":
		return usagef("%w: %s is what you may mean", err, otherWords[path])
	case len(near) > 0:
		return usagef("%w: did you mean %s?", err, strings.Join(near, ", "))
	case group == "":
		return err
	}
	var names []string
	for _, one := range cmd.Commands() {
		if one.IsAvailableCommand() {
			names = append(names, one.Name())
		}
	}
	return usagef("%w: there are %s", err, strings.Join(names, ", "))
}
