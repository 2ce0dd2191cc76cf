package xds_test

import "testing"

// sync status is the state that the one connected proxy is in now.
func (z *zoneServer) syncStatus() string {
	z.t.Helper()
	for _, m := range z.metric("causeway_xds_proxies_by_state") {
		if m.GetGauge().GetValue() == 1 {
			return m.GetLabel()[0].GetValue()
		}
	}
	return "" // changes are being worked in
}

func (z *zoneServer) comesTo(state string) {
	z.t.Helper()
	z.holds("the proxy is "+state, func() bool { return z.syncStatus() == state })
}

// answered waits until the zone has heard so many answers.
func (z *zoneServer) answered(n float64) {
	z.t.Helper()
	z.holds("the zone hears the answers", func() bool {
		sum := 0.0
		for _, m := range z.metric("causeway_xds_acks_total") {
			sum += m.GetCounter().GetValue()
		}
		return sum == n
	})
}

// TestOneThatComesBackIsBehind: what a proxy has of which the zone was not told is not known, so one that has a stream
// and has not asked for everything is behind, and one that asks for what it has is not.
func TestOneThatComesBackIsBehind(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	c := z.connected()
	z.comesTo("settled")
	c.close()
	z.comesTo("offline")

	back := z.delta()
	back.subscribe(nodeOf("backend", ""), cds, "*")
	back.next(cds)
	z.answered(4)
	if got := z.syncStatus(); got != "behind" {
		t.Errorf("a proxy that has asked for clusters only is %q", got)
	}
	back.subscribe(nil, lds, "*")
	back.next(lds)
	z.answered(5)
	if got := z.syncStatus(); got != "behind" {
		t.Errorf("a proxy that has not asked for the filters, which decide, is %q", got)
	}
	back.subscribe(nil, ecds, mainFilter)
	back.next(ecds)
	z.comesTo("settled")
}
