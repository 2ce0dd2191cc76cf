package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// byShadow is the policy that admits clients of zone-2 and counts them.
const byShadow = "kri_mtp_default_zone-1_backend-ns_without-zone-2_"

// shadowed are the calls in the report: two that would be denied, and one that would not.
var shadowed = []call{
	{client: gateway, to: backend1, inbound: httpPort, want: allow(byShadow)},
	{client: prometheus2, to: backend1, inbound: adminPort, want: allow(byShadow)},
	{client: frontend, to: backend1, inbound: httpPort, want: allow(byShadow)},
}

// wouldDeny plays an owner who wants to remove access: it applies the denial in the shadow, lets clients call, and asks
// zone-1 which would be denied. It reports whether the answer names exactly those clients.
func (m *mesh) wouldDeny(ctx context.Context) (ok bool, err error) {
	policy := applied{"owner-6-take-access-away.yaml", zone1}
	if err := m.apply(ctx, policy); err != nil {
		return false, err
	}
	ok = true
	for _, c := range shadowed {
		_, settled := m.settle(ctx, c)
		ok = ok && settled
	}
	args := []string{"report", "shadow", "--policy", byShadow}
	var answer []byte
	err = cluster.Until(ctx, settleTimeout, "the report of who would be denied", func(ctx context.Context) error {
		if answer, err = m.CTL(ctx, m.servers[zone1], nil, args...); err != nil {
			return cluster.Final(err)
		}
		for _, client := range []string{gateway, prometheus2} {
			if !bytes.Contains(answer, []byte(m.clients[client].ID())) {
				return fmt.Errorf("%s is not in it", client)
			}
		}
		return nil
	})
	if answer == nil {
		return false, err
	}
	fmt.Fprintf(m.out, "Who would be denied, if it were enforced? causewayctl %s\n\n%s", strings.Join(args, " "), answer)
	ok = ok && err == nil && !bytes.Contains(answer, []byte(m.clients[frontend].ID()))
	return ok, m.remove(ctx, policy)
}
