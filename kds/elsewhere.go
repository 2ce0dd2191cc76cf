package kds

import (
	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
)

// State is what this server knows of a zone; nil when it knows nothing.
func (g *Global) State(zone string) *tracker.ZoneState {
	data := g.data(zone)
	if data == nil {
		return nil
	}
	out := &tracker.ZoneState{Instance: g.instance(zone), Refusals: data.refusals.List(), Over: data.over.List(), Report: data.report.Load()}
	if out.Report != nil {
		out.Reported = out.Report.Received
	}
	data.ledger.Fill(out)
	return out
}

// instance is what the server that has a zone's session here calls this run of itself.
func (g *Global) instance(zone string) string {
	g.mu.Lock()
	s := g.sessions[zone]
	g.mu.Unlock()
	if s == nil {
		return ""
	}
	if p := s.peer.Load(); p != nil {
		return p.Instance
	}
	return ""
}

// Adopt applies another replica's status of a zone, unless the zone has a session here.
func (g *Global) Adopt(zone string, s *tracker.ZoneState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions[zone] != nil {
		return
	}
	data := g.zoneDataLocked(zone)
	data.ledger.Replace(s)
	data.refusals.Replace(s.Refusals)
	data.over.Replace(s.Over)
	if s.Report != nil {
		report := *s.Report
		report.Received = s.Reported
		data.report.Store(&report)
	}
}

// zoneDataLocked is what is remembered of a zone, from now on. g.mu is held.
func (g *Global) zoneDataLocked(zone string) *zoneData {
	data := g.zones[zone]
	if data == nil {
		data = &zoneData{zone: zone, ledger: tracker.NewLedger(), known: g.config.Known.of(zone), refusals: tracker.NewRefusals(), over: &tracker.Over{}}
		data.met = &acquaintance{ledger: data.ledger, log: g.config.Log.With("zone", zone), from: exchange.ZoneToGlobal}
		if g.config.StoreOf != nil {
			data.met.kept = g.config.StoreOf(zone)
		}
		g.zones[zone] = data
	}
	return data
}
