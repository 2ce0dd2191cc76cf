package main

import (
	"fmt"
	"io"
	"path/filepath"
)

// printNext suggests what to try next, with the addresses of this run.
func (m *mesh) printNext(w io.Writer, bin string) {
	ctl := filepath.Join(bin, "causewayctl")
	backend := m.workloads[backend1]
	api := func(server string) string { return m.servers[server].API.URL() }
	lines := []struct{ why, command string }{
		{"the zones, as the global sees them", fmt.Sprintf("%s --address %s get zones -o wide", ctl, api(globalServer))},
		{"a policy of the operator, on the global", fmt.Sprintf("%s --address %s apply -f %s", ctl, api(globalServer),
			filepath.Join(m.dir, operatorAllows))},
		{"the same policy, where it arrived", fmt.Sprintf("%s --address %s get meshtrafficpermissions", ctl, api(zone2))},
		{"what is enforced in front of backend, and why",
			fmt.Sprintf("%s --address %s inspect dataplane backend --namespace backend-ns", ctl, api(zone1))},
		{"an identity for a client", fmt.Sprintf("%s --address %s svid prometheus --namespace observability --out-dir %s", ctl, api(zone2), filepath.Join(m.Dir(), "prometheus"))},
		{"a call with it, across zones", fmt.Sprintf("curl -sS --insecure --cert %[1]s/svid.pem --key %[1]s/svid_key.pem https://127.0.0.1:%[2]d/", filepath.Join(m.Dir(), "prometheus"), backend.Inbound(httpPort).Port)},
		{"what the Envoy counted for each policy", fmt.Sprintf("curl -s '%s/stats?filter=rbac.policy'",
			backend.Proxy.AdminURL())},
		{"the logs of all processes", "ls " + filepath.Join(m.Dir(), "logs")},
	}
	fmt.Fprintln(w, "\nIt stays up until Ctrl-C. To try next:")
	for _, l := range lines {
		fmt.Fprintf(w, "\n  # %s\n  %s\n", l.why, l.command)
	}
	fmt.Fprintln(w)
}
