package main

import (
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// bothAnswer are commands that a global and a zone answer, each from what it has, and those that call no server.
var bothAnswer = []string{
	"apply", "audit", "auth whoami", "auth can-i", "backup create", "backup inspect", "bundle", "delete", "describe", "doctor",
	"edit", "explain", "fsck",
	"inspect dataplane", "inspect policy", "inspect service", "keys list", "keys retire", "keys rotate", "lint", "man",
	"migrate-store", "proxy certs", "proxy clusters", "proxy config", "proxy stats", "reference", "report access",
	"restore", "rollout status", "support-bundle", "test", "user revoke", "user token", "version",
	"zone accept-deletes", "zone rename", "zone resync", "why",
	"config current-context", "config delete-context", "config get-contexts", "config set-context", "config use-context", "login", "logout",
	"install crds", "install global", "install zone",
}

// otherServers calls a zone with everything that only a global knows, and vice versa: `other-servers`. The answer is
// never that there is none, and the status is exitNoAnswer. A new command must be in one of the tables.
func otherServers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: other-servers")
	}
	const global, zone, through = "ask a global", "ask the zone", "--zone NAME"
	file := ts.MkAbs("zone.yaml")
	asked := map[string][]struct{ args, want string }{
		"get": {{"zones", global},
			{"zones -o json", global}, {"zone zone-1", global}, {"zone-insights", global}, {"zone-insights zone-1", global}},
		"diff":                   {{"-f " + file, "a Zone exists on the global only"}},
		"inspect sync":           {{"--zone zone-1", global}},
		"zone adopt":             {{"", global}, {"zone-1", global}},
		"zone create":            {{"zone-2", global}},
		"zone delete":            {{"zone-1 --yes", global}},
		"zone disable":           {{"zone-1", global}},
		"zone enable":            {{"zone-1", global}},
		"zone list":              {{"", global}},
		"zone revoke":            {{"zone-1 --yes", global}},
		"zone token":             {{"zone-1", global}},
		"dataplane revoke-token": {{"id", zone}},
		"dataplane token":        {{"backend", zone}, {"--zone-ingress in", zone}},
		"keys import":            {{"identity-ca --certificates " + file + " --key " + file, zone}},
		"report denied":          {{"", through}},
		"report shadow":          {{"", through}},
		"secret delete":          {{"one", zone}},
		"secret list":            {{"", zone}},
		"secret set":             {{"one --from-file " + file, zone}},
		"suggest permissions":    {{"--dataplane backend", through}},
		"svid":                   {{"backend --out-dir " + ts.MkAbs("svid"), zone}},
	}
	var failed []string
	for _, path := range leaves(newRoot(&cli{}), "") {
		if asked[path] == nil && !slices.Contains(bothAnswer, path) {
			ts.Logf("%s: is in neither table: say which server knows what it asks for", path)
			failed = append(failed, path)
		}
		for _, one := range asked[path] {
			address := ts.Getenv("ZONE_ADDRESS")
			if one.want == zone || one.want == through {
				address = ts.Getenv(addressEnv)
			}
			full := append(strings.Fields(path), strings.Fields(one.args)...)
			status, said, toOut := called(address, full)
			if status != exitNoAnswer || toOut > 0 || !strings.Contains(said, one.want) {
				ts.Logf("FAILED %v: status %d, want %d and %q:\n%s", full, status, exitNoAnswer, one.want, said)
				failed = append(failed, path)
			}
		}
	}
	if len(failed) > 0 {
		ts.Fatalf("another server's knowledge is not called unknown by %q", failed)
	}
}
