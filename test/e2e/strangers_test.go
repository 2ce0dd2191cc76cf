package e2e

import (
	"context"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// testTwoSANs tests two URI SANs. Envoy joins URI SANs with a comma, so that a prefix would match the first and an
// exact denial neither.
func testTwoSANs(t *testing.T, e *enforcement) {
	e.with(e.zone1, owner("", entry("allow", "Prefix", "spiffe://default.zone-1.mesh.local/")))
	e.with(e.global, operator(entry("deny", "Exact", spiffeID("zone-1", "evil"))))
	e.becomes(e.frontend, "http-port", true, ownerKRI)
	stolen, err := e.zone1.StealAuthority(context.Background(), "default", e.frontendID.Bundles)
	e.must(err)
	honest, err := stolen.Forge(spiffeID("zone-1", "somebody"))
	e.must(err)
	c := cluster.NewClient(honest, false)
	defer c.Close()
	e.becomes(c, "http-port", true, ownerKRI) // so that the others fail because of the second SAN
	for _, ids := range [][]string{
		{spiffeID("zone-1", "frontend"), spiffeID("zone-1", "evil")},
		{spiffeID("zone-1", "evil"), spiffeID("zone-1", "frontend")},
	} {
		double, err := stolen.Forge(ids...)
		e.must(err)
		c := cluster.NewClient(double, false)
		e.becomes(c, "http-port", false, "multiple-uri-sans")
		e.refused(t, c)
		c.Close()
	}
}

// refused checks that every inbound refuses a client, at whatever layer.
func (e *enforcement) refused(t *testing.T, c *cluster.Client) {
	t.Helper()
	for _, inbound := range []string{"http-port", "admin-port"} {
		e.untouched(inbound, func() {
			status, _, err := c.Get(t.Context(), e.backend.Inbound(inbound).Port, "/")
			if err == nil && status != 403 {
				t.Errorf("%s answered %d to %s", inbound, status, c.ID())
			}
		})
	}
	e.untouched("tcp-port", func() {
		if err := c.Echo(t.Context(), e.backend.Inbound("tcp-port").Port); err == nil {
			t.Errorf("tcp-port let %s in", c.ID())
		}
	})
}

// allowAll allows every identity of both zones, so that only the handshake can refuse.
func (e *enforcement) allowAll() {
	e.t.Helper()
	e.with(e.global, operator(`{allow: [{spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/"}}, {spiffeId: {type: Prefix, value: "spiffe://default.zone-2.mesh.local/"}}]}`))
	e.becomes(e.frontend, "http-port", true, operatorKRI)
	e.becomes(e.frontend, "admin-port", true, operatorKRI)
	e.eventually("the TCP inbound to let in", func(ctx context.Context) error {
		return e.frontend.Echo(ctx, e.backend.Inbound("tcp-port").Port)
	})
}

func testNoSAN(t *testing.T, e *enforcement) {
	e.allowAll()
	stolen, err := e.zone1.StealAuthority(context.Background(), "default", e.frontendID.Bundles)
	e.must(err)
	nameless, err := stolen.Forge()
	e.must(err)
	c := cluster.NewClient(nameless, false)
	defer c.Close()
	e.refused(t, c)
}

func testPlaintext(t *testing.T, e *enforcement) {
	e.allowAll()
	for _, inbound := range []string{"http-port", "admin-port"} {
		e.untouched(inbound, func() {
			if status, err := cluster.PlainGet(t.Context(), e.backend.Inbound(inbound).Port); err == nil {
				t.Errorf("%s answered %d to plaintext", inbound, status)
			}
		})
	}
	e.untouched("tcp-port", func() {
		if err := cluster.PlainEcho(t.Context(), e.backend.Inbound("tcp-port").Port); err == nil {
			t.Error("tcp-port answered to plaintext")
		}
	})
}

func testForeignCA(t *testing.T, e *enforcement) {
	e.allowAll()
	for _, domain := range []string{"default.zone-1.mesh.local", "default.zone-3.mesh.local"} {
		foreign, err := cluster.ForeignAuthority(domain, e.frontendID.Bundles)
		e.must(err)
		id, err := foreign.Forge("spiffe://" + domain + "/ns/default/sa/frontend")
		e.must(err)
		c := cluster.NewClient(id, false)
		e.refused(t, c)
		c.Close()
	}
}
