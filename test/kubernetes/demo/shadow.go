package main

import (
	"context"
	"errors"
	"strings"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// showShadow takes access to backend away from clients of zone-2. In the shadow, they are still let in and a report
// names them; then they are denied.
func (m *mesh) showShadow(ctx context.Context) ([]row, error) {
	const title = "shadow deny, then deny"
	shadow, earnest := applied{"owner-6-take-access-away.yaml", zone1}, applied{"owner-deny-zone-2.yaml", zone1}
	rows, err := m.write(ctx, shadow)
	if err != nil {
		return rows, err
	}
	fromZone2 := call{from: frontend2, to: backend1, want: allow("")}
	rows = append(rows, m.try(ctx, title, fromZone2), m.try(ctx, title, call{from: frontend, to: backend1, want: allow("")}))
	const client = "spiffe://default.zone-2.mesh.local/ns/default/sa/frontend"
	report := row{what: "causewayctl report shadow, in zone-1, names who would be denied", want: client}
	_ = cluster.Until(ctx, patience, report.what, func(ctx context.Context) error {
		out, err := kubectl(ctx, m.one, "-n", zoneNamespace, "exec", zoneSet+"-0", "--", "/usr/bin/causewayctl", "report", "shadow")
		switch {
		case err != nil:
			return err
		case !strings.Contains(out, client):
			return errors.New(out)
		case strings.Contains(out, "spiffe://default.zone-1.mesh.local/"):
			return cluster.Final(errors.New("it names others, too: " + out))
		}
		report.got = client
		return nil
	})
	rows = append(rows, report)
	programmed, err := m.write(ctx, earnest)
	if rows = append(rows, programmed...); err != nil {
		return rows, err
	}
	fromZone2.want = deny("")
	rows = append(rows, m.try(ctx, title, fromZone2), m.try(ctx, title, call{from: frontend, to: backend1, want: allow("")}))
	for i := range rows {
		rows[i].title = title
	}
	return rows, m.remove(ctx, earnest)
}
