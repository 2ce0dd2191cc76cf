package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// denied is the request that the demo explains at its end.
var denied = call{client: gateway, to: backend1, inbound: httpPort, want: deny(byOperator)}

// exitDenied is the exit status of explain for a denied request.
const exitDenied = 1

// why makes the operator deny a client, and asks the global who denied it, as a client with a 403 would. It reports
// whether the answer names the policy that the Envoy decided by.
func (m *mesh) why(ctx context.Context) (ok bool, err error) {
	policy := applied{"operator-2-explicitly-denied.yaml", globalServer}
	if err := m.apply(ctx, policy); err != nil {
		return false, err
	}
	got, settled := m.settle(ctx, denied)
	zone, name, _ := strings.Cut(denied.to, "/")
	args := []string{
		"explain", "--zone", zone, "--to", name, "--namespace", "backend-ns", "--inbound", denied.inbound,
		"--from", m.clients[denied.client].ID(), "--path", "/orders",
	}
	answer, err := m.CTL(ctx, m.servers[globalServer], nil, args...)
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != exitDenied {
		return false, errors.Join(fmt.Errorf("explain: want exit status %d, for denied", exitDenied), err)
	}
	fmt.Fprintf(m.out, "Why 403? causewayctl %s\n\n%s", strings.Join(args, " "), answer)
	ok = settled && bytes.HasPrefix(answer, []byte("denied by "+got.DecidedBy))
	return ok, m.remove(ctx, policy)
}
