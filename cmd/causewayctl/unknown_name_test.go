package main

import (
	"bytes"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
)

// namesNothing are commands without the name of anything on a server, or whose name need not exist: tokens of proxies
// and zones are issued before these exist, and an id is revoked whether it was issued or not.
var namesNothing = []string{
	"apply", "auth whoami", "auth can-i", "backup create", "backup inspect", "bundle", "diff", "doctor", "fsck",
	"keys list",
	"migrate-store", "restore", "test", "user token", "version", "zone rename", "zone create", "zone list", "support-bundle",
	"dataplane token", "dataplane revoke-token", "user revoke", "zone token", "man", "reference",
	"secret set", "keys import", "config current-context", "config get-contexts", "config set-context", "login",
	"install crds", "install global", "install zone",
}

// unknownNames runs every command that takes a name with an unknown one: `unknown-names`. A new command must be in one
// of the two tables.
func unknownNames(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: unknown-names")
	}
	zone := []string{"--address", ts.Getenv("ZONE_ADDRESS")}
	const policy, dataplane, near = "kri_mtp_default___strikt_", "kri_dp_default_zone-1__bakend_", "kri_dp_default_zone-1__backend_"
	tried := map[string][]struct {
		args []string
		near string
	}{
		"get": {{[]string{"zone", "zone-2"}, "zone-1"}, {[]string{"mtp", "strikt"}, "strict"},
			{[]string{policy}, "strict"}, {[]string{"mesh", "defalt"}, "default"},
			{[]string{"replicas", "nothing"}, "here are "}, {[]string{"mtp", "--mesh", "defalt"}, "default"},
			{[]string{"mtp", "strict", "--mesh", "defalt"}, "mesh default"},
			{[]string{"dataplanes", "--mesh", "defalt"}, "default"}},
		"describe":          {{[]string{"mtp", "strikt"}, "strict"}, {[]string{policy}, "strict"}},
		"edit":              {{[]string{"mtp", "strikt"}, "strict"}, {[]string{policy}, "strict"}},
		"delete":            {{[]string{"mtp", "strikt"}, "strict"}, {[]string{"zone", "zone-2"}, "zone-1"}},
		"inspect dataplane": {{append([]string{"bakend"}, zone...), "backend"}, {append([]string{dataplane}, zone...), near}},
		"proxy certs":       {{append([]string{"bakend"}, zone...), "backend"}, {append([]string{dataplane}, zone...), near}},
		"proxy clusters":    {{append([]string{"bakend"}, zone...), "backend"}, {append([]string{dataplane}, zone...), near}},
		"proxy config":      {{append([]string{"bakend"}, zone...), "backend"}, {append([]string{dataplane}, zone...), near}},
		"proxy stats":       {{append([]string{"bakend"}, zone...), "backend"}, {append([]string{dataplane}, zone...), near}},
		"inspect policy":    {{[]string{"mtp", "strikt"}, "strict"}, {[]string{policy}, "strict"}},
		"inspect service":   {{[]string{"nothing"}, ""}},
		"inspect sync":      {{[]string{"--zone", "zone-2"}, "zone-1"}},
		"rollout status":    {{[]string{"mtp", "strikt"}, "strict"}, {[]string{policy}, "strict"}},
		"explain": {{append([]string{"--to", "bakend", "--from", "spiffe://a/b"}, zone...), "backend"},
			{[]string{"--to", "backend", "--from", "spiffe://a/b", "--zone", "zone-2"}, "zone-1"},
			{append([]string{"--to", dataplane + "http", "--from", "spiffe://a/b"}, zone...), near},
			{append([]string{"--to", "kri_dp_default_zone-2__backend_", "--from", "spiffe://a/b"}, zone...), near},
			{append([]string{"--to", "kri_dp_defalt_zone-1__backend_", "--from", "spiffe://a/b"}, zone...), "_default_"},
			{append([]string{"--to", "kri_dp_other_zone-1__backend_", "--from", "spiffe://a/b", "--mesh", "defalt"},
				zone...), "is in the mesh other"},
			{[]string{"--to", dataplane, "--from", "spiffe://a/b"}, near}},
		"logout":                {{[]string{"nothing"}, "set-context"}},
		"config use-context":    {{[]string{"nothing"}, "set-context"}},
		"config delete-context": {{[]string{"nothing"}, "set-context"}},
		"report access":         {{[]string{"--mesh", "defalt"}, "default"}, {append([]string{"--mesh", "defalt"}, zone...), "default"}},
		"report denied":         {{append([]string{"--mesh", "defalt"}, zone...), "defalt"}},
		"why": {{append([]string{"spiffe://a/b", "bakend"}, zone...), "backend"},
			{append([]string{"spiffe://a/b", dataplane}, zone...), near},
			{[]string{"spiffe://a/b", dataplane}, near},
			{append([]string{"spiffe://a/b", "kri_msvc_default_zone-1__bakend_"}, zone...), "kri_msvc_default_zone-1__backend_"}},
		"report shadow": {{append([]string{"--policy", policy}, zone...), "strict"}},
		"suggest permissions": {{append([]string{"--dataplane", "bakend"}, zone...), "backend"},
			{append([]string{"--dataplane", dataplane}, zone...), near}},
		"keys retire":   {{[]string{"token-signing", "nothing"}, ""}},
		"keys rotate":   {{[]string{"nothing"}, ""}},
		"secret delete": {{append([]string{"nothing"}, zone...), ""}},
		"svid": {{append([]string{"bakend", "--out-dir", ts.MkAbs("svid")}, zone...), "backend"},
			{append([]string{dataplane, "--out-dir", ts.MkAbs("svid")}, zone...), near}},
		"zone accept-deletes": {{[]string{"zone-2"}, "zone-1"}},
		"zone resync":         {{[]string{"zone-2"}, "zone-1"}},
		"zone revoke":         {{[]string{"zone-2", "--yes"}, "zone-1"}, {[]string{"zone-2"}, "zone-1"}},
		"zone adopt":          {{[]string{"zone-2"}, "zone-1"}},
		"zone enable":         {{[]string{"zone-2"}, "zone-1"}},
		"zone disable":        {{[]string{"zone-2"}, "zone-1"}},
		"zone delete":         {{[]string{"zone-2", "--yes"}, "zone-1"}, {[]string{"zone-2"}, "zone-1"}},
		"lint": {{[]string{"--mesh", "defalt"}, "default"},
			{append([]string{"--mesh", "defalt"}, zone...), "default"},
			{[]string{"--mesh", "defalt", "-f", ts.MkAbs("known.yaml")}, "default"}},
		"secret list": {{append([]string{"--mesh", "defalt"}, zone...), "default"}},
		"audit": {
			{[]string{"--event", "writes"}, "write"}, {[]string{"--outcome", "failled"}, "failed"},
			{[]string{"--type", "meshtimeot"}, "meshtimeouts"},
			{[]string{"--event", "writes", "--follow"}, "write"},
		},
	}
	var failed []string
	for _, path := range leaves(newRoot(&cli{}), "") {
		if slices.Contains(namesNothing, path) {
			continue
		}
		if tried[path] == nil {
			ts.Logf("%s: is in neither table: say with which name it is tried, or that it takes none", path)
			failed = append(failed, path)
		}
		for _, one := range tried[path] {
			full := append(strings.Fields(path), one.args...)
			status, said, _ := called(ts.Getenv(addressEnv), full)
			if status != exitUsage || !strings.Contains(said, one.near) {
				ts.Logf("FAILED %v: status %d, want %d and %q:\n%s", full, status, exitUsage, one.near, said)
				failed = append(failed, path)
			}
		}
	}
	if len(failed) > 0 {
		ts.Fatalf("unknown names are not told as such by %q", failed)
	}
}

// called calls what main calls, as the program at an address, and returns its status, all that it prints, and how much of
// that goes to the standard output. The scripts beside it start the program.
func called(address string, args []string) (status int, said string, toOut int) {
	var out, errOut bytes.Buffer
	if !slices.Contains(args, "--address") {
		args = append(slices.Clone(args), "--address", address)
	}
	status = run(args, strings.NewReader(""), &out, &errOut)
	return status, out.String() + errOut.String(), out.Len()
}

// leaves returns the commands without subcommands, by their path.
func leaves(cmd *cobra.Command, above string) []string {
	var out []string
	for _, child := range cmd.Commands() {
		path := strings.TrimSpace(above + " " + child.Name())
		if child.HasSubCommands() {
			out = append(out, leaves(child, path)...)
			continue
		}
		out = append(out, path)
	}
	return out
}
